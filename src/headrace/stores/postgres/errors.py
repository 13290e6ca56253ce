"""What PostgreSQL's errors mean to a caller of the store."""

from __future__ import annotations

import asyncpg

from headrace.address import scrubbed
from headrace.errors import (
    AnswerLost,
    Contention,
    HeadraceError,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)

CLASH = "HR001"
"""Raised by insert_jobs: the world is not as the insertion took it to be."""

_UNIQUE_VIOLATION = "23505"
_CONFLICTS = frozenset({"40001", "40P01"})  # serialization failure, deadlock
_BUSY = frozenset(
    {
        "25006",  # a read-only server: a failover is under way
        "53100",  # disk full
        "53200",  # out of memory
        "53300",  # too many connections
        "53400",
        "55P03",  # lock timeout
        "57014",  # statement timeout
        "57P01",  # the backend was told to end
        "57P02",
        "57P03",  # starting up or shutting down
        "57P05",
    }
)
_REFUSED = frozenset(
    {
        "28000",  # not allowed in
        "28P01",  # wrong password
        "3D000",  # no such database
        "42501",  # not allowed to do that
    }
)
_MISSING = frozenset({"3F000", "42P01", "42883", "42703"})  # schema, table, function, column
_DAMAGED = frozenset({"XX001", "XX002"})


class Violated(Exception):
    """A constraint spoke: the caller of the statement knows what that means."""


def sqlstate(error: BaseException) -> str | None:
    """The server's code, whichever driver reports it."""
    code = getattr(error, "sqlstate", None)
    return code if isinstance(code, str) else None


def is_violation(error: BaseException) -> bool:
    return sqlstate(error) in (CLASH, _UNIQUE_VIOLATION)


def is_conflict(error: BaseException) -> bool:
    """Rolled back because of another transaction: the same statement again may well pass."""
    return sqlstate(error) in _CONFLICTS


def is_unsent(error: BaseException) -> bool:
    """The driver noticed before it sent anything that the connection cannot be used any more."""
    return isinstance(
        error, asyncpg.InterfaceError | asyncpg.InternalClientError
    ) and not isinstance(error, ValueError)  # that is an argument it could not encode


def is_lost(error: BaseException) -> bool:
    """The connection is gone: what became of the statement is unknown."""
    code = sqlstate(error)
    return (
        is_unsent(error)
        or isinstance(error, OSError | TimeoutError)
        or (code is not None and code.startswith("08"))
        or code in ("57P01", "57P02", "57P03")
    )


def translate(error: Exception, where: str, *, writes: bool) -> HeadraceError:
    """The error as the store raises it."""
    if isinstance(error, HeadraceError):
        return error
    code = sqlstate(error)
    said = scrubbed(f"{type(error).__name__}: {error}".rstrip(": "))
    if is_lost(error):
        broke = f"the connection to {where} broke ({said})"
        if writes:
            return AnswerLost(
                f"{broke}; whether the write was stored is unknown: look before you repeat it"
            )
        return StoreUnavailable(f"{broke}; nothing was changed")
    if is_conflict(error):
        return Contention(f"{where}: {said}; nothing was written, try again")
    if code in _REFUSED:
        return StoreUnavailable(
            f"{where} refused ({said}); nothing was written: check the url, the database's name and "
            "the rights of its user"
        )
    if code in _BUSY:
        return StoreUnavailable(f"{where} cannot take this now ({said}); nothing was written")
    if code in _MISSING or code in _DAMAGED:
        return StoreCorrupt(
            f"{where} is damaged or is not Headrace's any more ({said}); nothing was written"
        )
    return StoreError(f"{where}: {said}; nothing of this call was written")
