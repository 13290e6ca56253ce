"""Connections to the file, each set up for its one use."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Literal

Synchronous = Literal["full", "normal"]

_STATEMENTS_MAX = 512  # prepared statements kept per connection: all of this package's
_WRITER_CACHE_KIB = 64 * 1024
_READER_CACHE_KIB = 16 * 1024
_CHECKPOINT_PAGES = 4000
_WAL_BYTES_KEPT = 64 * 1024 * 1024


def connect(
    path: Path, *, mode: Literal["rw", "rwc"], busy_timeout_seconds: float
) -> sqlite3.Connection:
    """A plain connection. Threads hand it over, but never use it at the same time."""
    connection = _open(path, f"mode={mode}")
    connection.execute(f"PRAGMA busy_timeout = {round(busy_timeout_seconds * 1000):d}")
    return connection


def connect_untouching(path: Path) -> sqlite3.Connection:
    """A connection that sees the file as it lies there, and leaves it and its folder as they are.

    `immutable` keeps SQLite from taking locks, from replaying a journal and from making files of its
    own. It reads through SQLite rather than `open`, because closing a file of one's own would drop
    every lock that this process holds on it through SQLite. `writable_schema` lets it pass over a size
    that does not fit the header, as a killed checkpoint leaves it: recovery mends that later.
    """
    connection = _open(path, "mode=ro&immutable=1")
    connection.execute("PRAGMA writable_schema = ON")
    return connection


def for_writing(connection: sqlite3.Connection, synchronous: Synchronous) -> None:
    """Set up the write connection. Its thread waits for the lock by itself."""
    level = {"full": "FULL", "normal": "NORMAL"}[synchronous]
    connection.execute("PRAGMA busy_timeout = 0")
    connection.execute(f"PRAGMA synchronous = {level}")
    connection.execute(f"PRAGMA cache_size = {-_WRITER_CACHE_KIB:d}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES:d}")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES_KEPT:d}")
    connection.execute("PRAGMA temp_store = MEMORY")


def for_reading(path: Path, busy_timeout_seconds: float) -> sqlite3.Connection:
    connection = connect(path, mode="rw", busy_timeout_seconds=busy_timeout_seconds)
    connection.execute("PRAGMA query_only = ON")
    connection.execute(f"PRAGMA cache_size = {-_READER_CACHE_KIB:d}")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def _open(path: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.as_uri()}?{options}",
        uri=True,
        isolation_level=None,  # transactions are ours to begin and end
        check_same_thread=False,
        cached_statements=_STATEMENTS_MAX,
    )
