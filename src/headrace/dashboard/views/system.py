"""The store and who relies on it: what `headrace doctor` finds, readers of the log, versions."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

import msgspec

from headrace.dashboard.asked import Asked, View
from headrace.dashboard.same import Same, command, curl
from headrace.stores.base import Health
from headrace.version import VERSION

PACKAGES = ("msgspec", "starlette", "uvicorn", "jinja2", "asyncpg", "redis")


async def system(asked: Asked) -> View:
    manager = asked.manager
    findings = await manager.diagnose()
    readers = (
        []
        if manager.tenant is not None
        else [(reader, await manager.reader_lag(reader)) for reader in await manager.readers()]
    )
    order = {Health.ERROR: 0, Health.WARNING: 1, Health.OK: 2}
    return View(
        "system.html",
        "System",
        {
            "findings": sorted(findings, key=lambda one: order.get(one.health, 3)),
            "readers": readers,
            "capabilities": msgspec.structs.asdict(manager.capabilities),
            "versions": _versions(),
        },
        same=(
            Same("Look after the store", command("doctor"), curl(asked.address, "/doctor")),
            Same(
                "Who reads the log", command("events", "readers"), curl(asked.address, "/readers")
            ),
        ),
        # What the store says of itself may take as long as reading all of it: when somebody asks.
        topics=(),
        every_seconds=None,
    )


def _versions() -> list[tuple[str, str]]:
    found = [
        ("headrace", VERSION),
        ("Python", platform.python_version()),
        ("SQLite", sys.modules["sqlite3"].sqlite_version if "sqlite3" in sys.modules else "–"),
    ]
    for name in PACKAGES:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return [one for one in found if one[1] != "–"]
