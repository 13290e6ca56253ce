"""The options of the specification's stores, under their own names and with its defaults."""

from __future__ import annotations

from typing import Protocol
from urllib.parse import quote

from headrace import address, validation
from headrace.errors import InvalidInput
from headrace.redaction import Redacted

TABLE_NAME_DEFAULT = "AsyncJobs"
_SQLITE = "sqlite"
_SQL = ("postgresql", _SQLITE)
_REDIS = ("redis", "rediss", "unix")


class Place(Redacted, frozen=True, kw_only=True):
    """What options come to: which store, and how it is opened and asked."""

    url: str
    create: bool = True
    migrate: bool = False
    retry_count: int = 0


class StoreOptions(Protocol):
    """What `JobStore.open` takes in place of a url."""

    def place(self) -> Place: ...


class UrlOptions(Redacted, frozen=True):
    """A url, and nothing besides."""

    url: str

    def place(self) -> Place:
        return Place(url=self.url)


class RedisJobStoreOptions(Redacted, frozen=True, kw_only=True):
    """Jobs in Redis."""

    connection_string: str = "localhost:6379"
    """`host:port`, or a url: `redis://user:password@host:port/0`, `rediss://…` with TLS."""
    jobs_key_prefix: str = "async_jobs:"
    """In the name of every key; jobs under another prefix are not seen."""
    retry_count: int = 3
    """So often a call is tried again while the server cannot be reached; nothing was written then."""

    def place(self) -> Place:
        url = _text(self.connection_string, "connection_string")
        if "://" not in url:
            url = f"redis://{url}/0"
        if address.split(url).scheme not in _REDIS:
            raise InvalidInput(
                "the connection_string is not one of Redis: write host:port or redis://host:port/0; "
                f"{validation.UNCHANGED}"
            )
        prefix = quote(_text(self.jobs_key_prefix, "jobs_key_prefix"), safe="")
        retries = validation.check_limit(self.retry_count, "retry_count", minimum=0)
        return Place(url=_with(url, f"prefix={prefix}"), retry_count=retries)


class SqlJobStoreOptions(Redacted, frozen=True, kw_only=True):
    """Jobs in PostgreSQL or SQLite: the specification's EFCoreJobStoreOptions."""

    connection_string: str = ""
    """`postgresql://user:password@host:port/database`, or `sqlite:///jobs.db`. It has no default."""
    table_name: str = TABLE_NAME_DEFAULT
    """PostgreSQL: the schema that holds the tables; jobs of another are not seen. A SQLite file holds one
    set of jobs: there another name is refused."""
    auto_create_tables: bool = True
    """Create what is missing and bring older tables up to date on opening. False: opening fails instead."""

    def place(self) -> Place:
        url = _text(self.connection_string, "connection_string")
        scheme = address.split(url).scheme
        if scheme not in _SQL:
            raise InvalidInput(
                "the connection_string names no SQL database: write postgresql://host/database or "
                f"sqlite:///jobs.db; {validation.UNCHANGED}"
            )
        name = _text(self.table_name, "table_name")
        if scheme != _SQLITE:
            url = _with(url, f"schema={quote(name, safe='')}")
        elif name != TABLE_NAME_DEFAULT:
            raise InvalidInput(
                f"table_name is {validation.told(name)}, and a SQLite file holds one set of jobs: give "
                f"another file; {validation.UNCHANGED}"
            )
        if not isinstance(self.auto_create_tables, bool):
            raise InvalidInput(f"auto_create_tables must be a bool; {validation.UNCHANGED}")
        return Place(url=url, create=self.auto_create_tables, migrate=self.auto_create_tables)


def _text(value: object, what: str) -> str:
    plain = str.__str__(value) if isinstance(value, str) else ""
    if not plain.strip() or not plain.isprintable():
        raise InvalidInput(f"{what} must be text and not empty; {validation.UNCHANGED}")
    return plain


def _with(url: str, option: str) -> str:
    return f"{url}{'&' if address.split(url).query else '?'}{option}"
