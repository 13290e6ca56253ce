"""`headrace migrate` and `headrace version`: the store's schema, and what is installed."""

from __future__ import annotations

import asyncio
import platform
from typing import Protocol, runtime_checkable

import msgspec

import headrace
from headrace.cli.exits import PROGRAM, Exit
from headrace.cli.output import Output
from headrace.cli.session import current_settings
from headrace.cli.settings import Settings, command
from headrace.connect import connect
from headrace.errors import SchemaTooOld, StoreUnavailable
from headrace.manager import JobManager
from headrace.redaction import Redacted


class VersionRecord(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    python: str


@runtime_checkable
class HasSchema(Protocol):
    """A store whose data has a version."""

    async def schema_version(self) -> int: ...


class MigratedRecord(Redacted, frozen=True, kw_only=True):
    """Schema versions before and after. Both null: the store has no schema. 0: there was no store."""

    url: str
    from_version: int | None
    to_version: int | None


@command(
    "migrate",
    examples=("headrace migrate", "headrace migrate --url sqlite:////var/lib/app/jobs.db"),
)
def migrate() -> Exit:
    """Create the store, or bring its schema up to date."""
    settings = current_settings()
    record = asyncio.run(_migrate(settings))
    out = Output(as_json=settings.json)
    if out.as_json:
        out.document(record)
    elif record.to_version is None:
        out.text(f"{record.url} has no schema: nothing to do")
    elif record.from_version == record.to_version:
        out.text(f"{record.url} is at schema version {record.to_version}: nothing to do")
    elif record.from_version == 0:
        out.text(f"{record.url} created at schema version {record.to_version}")
    else:
        out.text(
            f"{record.url} migrated from schema version {record.from_version} to {record.to_version}"
        )
    return Exit.OK


async def _migrate(settings: Settings) -> MigratedRecord:
    before = await _version_before(settings.url)
    async with await connect(settings.url, migrate=True) as jobs:
        after = await _version_of(jobs)
    return MigratedRecord(
        url=settings.shown_url, from_version=None if after is None else before, to_version=after
    )


async def _version_before(url: str) -> int | None:
    """The schema's version as it is now; 0 where there is no store yet."""
    try:
        async with await connect(url, create=False) as jobs:
            return await _version_of(jobs)
    except SchemaTooOld as error:
        return error.version
    except StoreUnavailable:
        return 0  # it is missing, or the migration will say what else is wrong


async def _version_of(jobs: JobManager) -> int | None:
    """None: a store that keeps nothing has no schema."""
    store = jobs.store
    return await store.schema_version() if isinstance(store, HasSchema) else None


@command("version", examples=("headrace version", "headrace version --json"))
def version() -> Exit:
    """Print the version of Headrace."""
    out = Output(as_json=current_settings().json)
    if out.as_json:
        out.document(VersionRecord(version=headrace.__version__, python=platform.python_version()))
    else:
        out.text(f"{PROGRAM} {headrace.__version__}")
    return Exit.OK
