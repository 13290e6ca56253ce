"""What SQLite's errors mean to a caller of the store."""

from __future__ import annotations

import sqlite3

from headrace.errors import HeadraceError, StoreCorrupt, StoreError, StoreUnavailable

_PRIMARY = 0xFF  # the low byte of an extended result code is the plain one
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_UNREACHABLE = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
    }
)


def is_busy(error: BaseException) -> bool:
    """Another connection is in the way just now: worth trying again."""
    return isinstance(error, sqlite3.Error) and _code(error) in _BUSY


def is_damage(error: sqlite3.Error) -> bool:
    return _code(error) in _DAMAGED


def translate(error: Exception, path: str) -> HeadraceError:
    """The error as the store raises it. Only for errors after which nothing of the call is stored."""
    if isinstance(error, HeadraceError):
        return error
    meaning = _meaning(error, path)
    meaning.__cause__ = error
    return meaning


def _meaning(error: Exception, path: str) -> StoreError:
    if not isinstance(error, sqlite3.Error):
        return StoreError(
            f"{path}: {type(error).__name__}: {error}; nothing of this call was written"
        )
    if is_busy(error):
        return StoreUnavailable(
            f"{path} stayed locked by another process ({error}); nothing was written: try again, "
            "or give a longer busy timeout"
        )
    if is_damage(error):
        return StoreCorrupt(
            f"{path} is damaged ({error}); nothing was written: stop every process that uses it, "
            "keep a copy, and restore a backup"
        )
    if _code(error) in _UNREACHABLE:
        return StoreUnavailable(
            f"{path} cannot be used ({error}); nothing was written: check the disk's space and the "
            "permissions of the file and its folder"
        )
    return StoreError(
        f"{path}: SQLite refused the call ({error}); nothing of this call was written"
    )


def _code(error: sqlite3.Error) -> int:
    # Errors of the Python module itself (a closed connection, say) have no code.
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return -1 if code is None else code & _PRIMARY
