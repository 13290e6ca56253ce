"""The one place that picks a store: from a url to a manager."""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, cast
from urllib.parse import parse_qsl, unquote

from headrace import address
from headrace.clock import Clock, StoreClock
from headrace.crypto import KeyRing
from headrace.errors import InvalidInput, UnknownStore
from headrace.input_checks import checked
from headrace.manager import JobManager
from headrace.manager.context import read_clock
from headrace.policy import Policies, Policy
from headrace.stores.base import JobStore

_registered: dict[str, Callable[[str], Awaitable[JobStore]]] = {}


@checked
async def connect(
    url: str | JobStore,
    *,
    policies: Policies | Policy | None = None,
    clock: Clock | None = None,
    tenant: str | None = None,
    migrate: bool = False,
    create: bool = True,
    dice: random.Random | None = None,
    keys: KeyRing | None = None,
    token: str | None = None,
) -> JobManager:
    """Open the store behind `url` (or take one that is open) and put a manager on it.

    `memory:` holds jobs in this process; `sqlite:///jobs.db` in a file (three slashes: relative path,
    four: absolute). Without a `clock`, the store's own is the authority. With `keys`, contents of jobs are
    encrypted in the store. `https://…` is a server, and `token` what to show to it (by default that of the
    environment's HEADRACE_TOKEN): the rules of its jobs are its own.
    """
    if isinstance(policies, Policy):
        policies = Policies(default=policies)
    if isinstance(url, str) and address.is_server(url):
        return await _reach(url, token, clock=clock, policies=policies, tenant=tenant, keys=keys)
    store = await _store(url, migrate=migrate, create=create)
    try:
        if clock is None:
            clock = await measured_clock(store)
    except BaseException:
        await store.close()
        raise
    return JobManager(store, clock=clock, policies=policies, tenant=tenant, dice=dice, keys=keys)


async def _reach(
    url: str,
    token: str | None,
    *,
    clock: Clock | None,
    policies: Policies | None,
    tenant: str | None,
    keys: KeyRing | None,
) -> JobManager:
    """A manager that asks a server."""
    with _extra("client"):
        from headrace.client import reach

    if keys is not None:
        raise InvalidInput(
            "contents are encrypted where the store is: give the keys to headrace serve; nothing was opened"
        )
    return await reach(
        url,
        (token or os.environ.get(address.TOKEN_VARIABLE, "")).strip() or None,
        clock=clock,
        policies=policies,
        tenant=tenant,
    )


async def _store(given: str | JobStore, *, migrate: bool, create: bool) -> JobStore:
    # A store is known by what it can do: whoever wrote it need not have heard of ours.
    if all(callable(getattr(given, verb, None)) for verb in ("insert", "claim", "now")):
        return cast("JobStore", given)
    return await open_store(cast("str", given), migrate=migrate, create=create)


async def measured_clock(store: JobStore) -> StoreClock:
    """The store's clock, as seen from here."""
    store_time, seconds = await read_clock(store)
    return StoreClock(store_time, round_trip_seconds=seconds)


async def open_store(url: str, *, migrate: bool = False, create: bool = True) -> JobStore:
    """The store behind the url. Nothing is loaded for stores that are not asked for.

    SQLAlchemy's spellings (`postgresql+asyncpg://`, `sqlite+aiosqlite:///`) are those of the plain store.
    """
    scheme = address.scheme_of(url)
    if scheme in _registered:
        return await _registered[scheme](url)
    parts = address.split(url)
    plain, shown = address.joined(parts), address.shown(url)
    match parts.scheme:
        case "memory":
            from headrace.stores.memory import MemoryStore

            _refuse_options(shown, _options(parts))
            return MemoryStore()
        case "sqlite":
            from headrace.stores.sqlite import SqliteStore

            return await SqliteStore.open(
                _path(parts, shown),
                migrate=migrate,
                create=create,
                **_sqlite_options(shown, _options(parts)),
            )
        case "postgresql":
            with _extra("postgres"):
                from headrace.stores.postgres import PostgresStore

            return await PostgresStore.open(plain, migrate=migrate, create=create)
        case "redis" | "rediss" | "unix":
            with _extra("redis"):
                from headrace.stores.redis import RedisStore

            return await RedisStore.open(plain, migrate=migrate, create=create)
        case _:
            raise UnknownStore(
                f"no store answers to {shown}: use memory:, sqlite:///path, postgresql://… or redis://…"
            )


def register_store(scheme: str, opener: Callable[[str], Awaitable[JobStore]]) -> None:
    """Let `connect` know a store of one's own: urls with this scheme are handed to `opener`."""
    if scheme in address.SCHEMES or not scheme:
        raise InvalidInput(f"the scheme {scheme!r} is taken by a store that Headrace brings")
    _registered[scheme] = opener


@contextmanager
def _extra(name: str) -> Iterator[None]:
    """A driver that is not installed is the user's to install: say how."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UnknownStore(
            f"this store needs {error.name}, which is not installed: pip install 'headrace[{name}]'"
        ) from error


def _path(parts: address.Parts, shown: str) -> PurePath:
    path = unquote(parts.path.removeprefix("/"))
    if parts.user or parts.hosts or not path:
        raise UnknownStore(
            f"{shown} names no file: write sqlite:///jobs.db or sqlite:////absolute/jobs.db"
        )
    if not path.isprintable():
        raise UnknownStore(f"{shown} names a file that cannot be: it has control characters")
    return PurePath(path)


def _options(parts: address.Parts) -> dict[str, str]:
    return dict(parse_qsl(parts.query, keep_blank_values=True))


def _sqlite_options(shown: str, options: dict[str, str]) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    if (synchronous := options.pop("synchronous", None)) is not None:
        if synchronous not in ("full", "normal"):
            raise InvalidInput(f"synchronous={synchronous!r} in {shown}: it is full or normal")
        chosen["synchronous"] = synchronous
    _refuse_options(shown, options)
    return chosen


def _refuse_options(shown: str, options: dict[str, str]) -> None:
    if options:
        raise InvalidInput(
            f"{shown} has options this store does not know: {', '.join(sorted(options))}"
        )
