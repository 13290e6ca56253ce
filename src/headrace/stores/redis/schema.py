"""The schema's version, and what is done about one that is not ours."""

from __future__ import annotations

from headrace.errors import SchemaTooNew, SchemaTooOld, StoreCorrupt, StoreUnavailable
from headrace.stores.redis.scripts import Script
from headrace.stores.redis.server import Server

SCHEMA_VERSION = 1
"""Version 1 is the first: there is nothing to migrate from yet."""

_OPEN = Script("open")


async def check(server: Server, *, migrate: bool, create: bool) -> None:
    """Make sure that the store has the present schema; an empty one is given it if `create`."""
    answer: bytes = await server.read_script(_OPEN, str(SCHEMA_VERSION) if create else "")
    where = f"{server.address} under the prefix {server.keys.root}"
    if answer == b"":
        raise StoreUnavailable(f"there is no store at {where}, and none was to be created")
    if not answer.isdigit():
        raise StoreCorrupt(f"{where} is not a Headrace store: its schema version is {answer!r}")
    version = int(answer)
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"{where} has schema {version}, this Headrace knows {SCHEMA_VERSION}; it was left "
            "untouched: use a newer Headrace"
        )
    if version < SCHEMA_VERSION:
        # `migrate` will bring it up once there is a version to come from.
        raise SchemaTooOld(
            f"{where} has schema {version}, this Headrace needs {SCHEMA_VERSION}; it was left "
            f"untouched: {'no migration starts there' if migrate else 'open it with migrate=True'}"
        )
