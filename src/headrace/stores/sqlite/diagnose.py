"""What the file says of its own health."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from headrace.stores.base import Finding, Health
from headrace.stores.sqlite import schema
from headrace.stores.sqlite.session import Snapshot

WAL_BYTES_MAX = 256 << 20
"""A log file that is larger than this is not being emptied: some reader holds it open."""


def synchronous(connection: sqlite3.Connection) -> str:
    """The setting of the connection that writes: it is not stored in the file."""
    (level,) = connection.execute("PRAGMA synchronous").fetchone()
    return {1: "normal", 2: "full"}.get(level, str(level))


def diagnose(view: Snapshot, path: Path, level: str) -> list[Finding]:
    version = schema.version_of(view.connection)
    (journal,) = view.connection.execute("PRAGMA journal_mode").fetchone()
    (damage,) = view.connection.execute("PRAGMA quick_check(1)").fetchone()
    wal = path.with_name(path.name + "-wal")
    wal_bytes = wal.stat().st_size if wal.exists() else 0
    return [
        Finding(Health.OK, "store", f"SQLite {sqlite3.sqlite_version}, {path}"),
        Finding(Health.OK, "schema", f"version {version} of {schema.LATEST_SCHEMA_VERSION}"),
        Finding(
            Health.OK if level == "full" else Health.WARNING,
            "durability",
            f"journal {journal}, synchronous {level}",
            None
            if level == "full"
            else "a power failure may lose the last writes; leave synchronous=normal out to rule that out",
        ),
        Finding(
            Health.OK if damage == "ok" else Health.ERROR,
            "integrity",
            "ok" if damage == "ok" else str(damage),
            None
            if damage == "ok"
            else "the file is damaged: stop every writer and restore a backup",
        ),
        Finding(
            Health.OK if wal_bytes < WAL_BYTES_MAX else Health.WARNING,
            "file",
            f"{path.stat().st_size:,} bytes, log {wal_bytes:,} bytes",
            None
            if wal_bytes < WAL_BYTES_MAX
            else "a reader keeps the log from being emptied: find and end it",
        ),
    ]
