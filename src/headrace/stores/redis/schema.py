"""The schema's version, and what is done about one that is not ours."""

from __future__ import annotations

from headrace.errors import SchemaTooNew, SchemaTooOld, StoreCorrupt, StoreUnavailable
from headrace.stores.redis.connection import Server
from headrace.stores.redis.scripts import Script

SCHEMA_VERSION = 3

_OPEN = Script("open")
_STEPS = {1: Script("migrate_2"), 2: Script("migrate_3")}
"""By the version they start from. Each is one atomic step, and does nothing to another version."""


async def check(server: Server, *, migrate: bool, create: bool) -> None:
    """Make sure that the store has the present schema.

    An empty one is given it if `create`, an older one is brought to it if `migrate`.
    """
    where = f"{server.address} under the prefix {server.keys.root}"
    answer = await server.read_script(_OPEN, str(SCHEMA_VERSION) if create else "")
    if answer == b"":
        raise StoreUnavailable(
            f"there is no store at {where}, and none was created: check the url, or create it with "
            "headrace submit or headrace migrate"
        )
    version = _read(answer, where)
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"{where} has schema {version}, this Headrace knows {SCHEMA_VERSION}; it was left "
            "untouched: use a newer Headrace"
        )
    while version < SCHEMA_VERSION:
        step = _STEPS.get(version)
        if step is None or not migrate:
            raise SchemaTooOld(
                f"{where} has schema {version}, this Headrace needs {SCHEMA_VERSION}; it was left "
                f"untouched: {_NO_WAY if step is None else _HOW}",
                version=version,
            )
        version = _read(await server.read_script(step), where)


async def version_of(server: Server) -> int:
    """The schema that the store has now."""
    answer = await server.read("GET", server.keys.of("schema"))
    return _read(answer or b"", f"{server.address} under the prefix {server.keys.root}")


_NO_WAY = "no migration starts there"
_HOW = (
    "stop the processes of the older version (after the migration they could not write any more), then "
    "open it with migrate=True (headrace migrate)"
)


def _read(answer: bytes, where: str) -> int:
    if not answer.isdigit():
        raise StoreCorrupt(f"{where} is not a Headrace store: its schema version is {answer!r}")
    return int(answer)
