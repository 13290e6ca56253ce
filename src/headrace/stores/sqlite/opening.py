"""Opening a file: is it ours, is it of our version, and what to do if not.

Whatever is wrong is found before the file is opened for real, so that a file which cannot be used is
left byte for byte as it is, and its folder without any new file.

The file's own header tells. It can be trusted because it never changes in WAL mode: a new file gets its
schema, and an old one its upgrade, with a rollback journal and alone.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from contextlib import closing
from pathlib import Path

from headrace.errors import (
    SchemaTooNew,
    SchemaTooOld,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from headrace.stores.sqlite import schema
from headrace.stores.sqlite.connection import connect, connect_untouching
from headrace.stores.sqlite.errors import is_busy, is_damage, translate

SQLITE_VERSION_MIN = (3, 37, 0)
"""The first with STRICT tables."""

_DATABASE_BYTES_MIN = 512
_RETRY_SECONDS = 0.01


def open_file(
    path: Path, *, create: bool, migrate: bool, busy_timeout_seconds: float
) -> sqlite3.Connection:
    """A connection to a file of the newest schema in WAL mode. Creates or upgrades it if allowed."""
    _check_sqlite()
    _check_place(path, create=create)
    version = _inspect(path, create=create)
    _check_version(path, version, migrate=migrate)
    _check_writable(path)
    try:
        connection = connect(
            path, mode="rwc" if create else "rw", busy_timeout_seconds=busy_timeout_seconds
        )
        try:
            _bring_up(
                path, connection, create=create, migrate=migrate, seconds=busy_timeout_seconds
            )
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise translate(error, str(path)) from error
    return connection


# --- looking, without touching -------------------------------------------------------------------


def _check_sqlite() -> None:
    if sqlite3.sqlite_version_info < SQLITE_VERSION_MIN:
        needed = ".".join(map(str, SQLITE_VERSION_MIN))
        raise StoreError(
            f"this Python has SQLite {sqlite3.sqlite_version}, Headrace needs {needed} or newer; "
            "nothing was opened: use a newer build of Python"
        )


def _check_place(path: Path, *, create: bool) -> None:
    """The path leads to a regular file, or to nothing where one may be made."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if not create:
            raise StoreUnavailable(
                f"{path}: no such file; nothing was created: check the path, or allow it to be created"
            ) from None
        if not path.parent.is_dir():
            raise StoreUnavailable(
                f"{path}: its folder does not exist; nothing was created: make the folder first"
            ) from None
        return
    except OSError as error:
        raise StoreUnavailable(
            f"{path} cannot be reached ({error.strerror}); nothing was changed: check the path and its "
            "permissions"
        ) from error
    if not stat.S_ISREG(mode):
        raise StoreUnavailable(
            f"{path} is not a regular file; it was left as it is: give the path of a file"
        )


def _inspect(path: Path, *, create: bool) -> int:
    """The schema version in the header; 0 if the file is new: missing, empty, or without any table."""
    if not path.exists():
        return 0
    size = path.stat().st_size
    if size == 0 and create:
        return 0
    if size == 0:
        raise StoreUnavailable(
            f"{path} is empty; it was left as it is: check the path, or allow it to be created"
        )
    if size < _DATABASE_BYTES_MIN:  # SQLite takes so short a file for an empty one
        raise StoreCorrupt(
            f"{path} is too short for a SQLite database; it was left as it is: check the path"
        )
    if not os.access(path, os.R_OK):
        raise StoreUnavailable(
            f"{path} may not be read; it was left as it is: check its permissions"
        )
    try:
        with closing(connect_untouching(path)) as connection:
            return _version_now(path, connection)
    except sqlite3.Error as error:
        if is_damage(error):
            raise StoreCorrupt(
                f"{path} is not a SQLite database, or its header is damaged ({error}); it was left as "
                "it is: check the path, or restore a backup"
            ) from error
        raise translate(error, str(path)) from error


def _version_now(path: Path, connection: sqlite3.Connection) -> int:
    """In one transaction: another process may be creating the file between two looks."""
    connection.execute("BEGIN")
    try:
        return _own_version(path, connection)
    finally:
        connection.execute("ROLLBACK")


def _own_version(path: Path, connection: sqlite3.Connection) -> int:
    """The schema version of a file of ours, 0 if there is nothing in it yet."""
    application = schema.application_of(connection)
    if application == schema.APPLICATION_ID:
        return schema.version_of(connection)
    if application != 0 or not schema.is_empty(connection):
        raise StoreCorrupt(
            f"{path} is a SQLite database of another program; it was left as it is: give Headrace a "
            "file of its own"
        )
    return 0


def _check_version(path: Path, version: int, *, migrate: bool) -> None:
    latest = schema.LATEST_SCHEMA_VERSION
    if version > latest:
        raise SchemaTooNew(
            f"{path} has schema version {version}, this Headrace knows versions up to "
            f"{latest}; the file was left as it is: use the newer Headrace that wrote it"
        )
    if 0 < version < latest and not migrate:
        raise SchemaTooOld(
            f"{path} has schema version {version}, this Headrace needs {latest}; the "
            "file was left as it is: make a backup, stop every process that uses it, and open it with "
            "migrate=True (headrace migrate)",
            version=version,
        )


def _check_writable(path: Path) -> None:
    """Asked beforehand: SQLite would open a file it may not write to, and fail later."""
    if path.exists() and not os.access(path, os.W_OK):
        raise StoreUnavailable(
            f"{path} may not be written to; it was left as it is: check its permissions"
        )
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise StoreUnavailable(
            f"{path}: files may not be made in its folder, where SQLite keeps its log beside the file; "
            "nothing was changed: check the folder's permissions"
        )


# --- bringing it up ------------------------------------------------------------------------------


def _bring_up(
    path: Path, connection: sqlite3.Connection, *, create: bool, migrate: bool, seconds: float
) -> None:
    """Create or upgrade if need be, then switch to WAL.

    Looks again, since another process may have been at work meanwhile, or may have been killed at it:
    SQLite has put the file in order by now.
    """
    version = _version_now(path, connection)
    if version == 0 and not create:
        raise StoreUnavailable(f"{path} is empty; nothing was stored: allow it to be created")
    _check_version(path, version, migrate=migrate)
    if version < schema.LATEST_SCHEMA_VERSION:
        if version > 0:
            _leave_wal(path, connection, seconds)
        _upgrade(path, connection, migrate=migrate)
    _set_journal_mode(path, connection, "wal", seconds)


def _upgrade(path: Path, connection: sqlite3.Connection, *, migrate: bool) -> None:
    connection.execute("BEGIN EXCLUSIVE")
    try:
        _check_version(path, _own_version(path, connection), migrate=migrate)
        schema.upgrade(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _leave_wal(path: Path, connection: sqlite3.Connection, seconds: float) -> None:
    """Only one who is alone with the file can; and processes of the older version must be gone."""
    try:
        _set_journal_mode(path, connection, "delete", seconds)
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise
        raise StoreUnavailable(
            f"{path} is in use, so it cannot be migrated; it was left as it is: stop every process that "
            "uses it and try again"
        ) from error


def _set_journal_mode(
    path: Path, connection: sqlite3.Connection, mode: str, seconds: float
) -> None:
    """Switching takes the file's exclusive lock for a moment, and SQLite does not wait for that one."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            (found,) = connection.execute(f"PRAGMA journal_mode = {mode}").fetchone()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            break
    if found != mode:
        raise StoreUnavailable(
            f"{path} lies where SQLite cannot keep its {mode} journal; nothing was stored: use a "
            "local disk, not a network share"
        )
