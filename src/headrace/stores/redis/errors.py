"""What the server's errors mean to a caller of the store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import redis.exceptions as redis_errors

from headrace.errors import AnswerLost, StoreCorrupt, StoreError, StoreUnavailable

_NOT_NOW = ("LOADING", "BUSY ", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "ASK ")
_REFUSED = ("OOM", "MISCONF", "READONLY", "NOREPLICAS", "NOAUTH", "NOPERM", "WRONGPASS", "MOVED")
_DAMAGED = ("CORRUPT", "WRONGTYPE")


def is_not_now(error: redis_errors.RedisError) -> bool:
    """The server did not run the command and will do so soon: worth trying again."""
    return isinstance(error, redis_errors.BusyLoadingError) or _text(error).startswith(_NOT_NOW)


def is_missing_script(error: BaseException) -> bool:
    return isinstance(error, redis_errors.NoScriptError)


def translate(error: redis_errors.ResponseError, address: str) -> StoreError:
    """An answer of the server that says no, as the store raises it."""
    text = _text(error)
    if text.startswith(_REFUSED):
        return StoreUnavailable(f"{address} refuses the command ({text}); nothing was written")
    if text.startswith(_DAMAGED) or "WRONGTYPE" in text:
        return StoreCorrupt(
            f"{address} holds data that is damaged or not Headrace's ({text}); nothing was written"
        )
    return StoreError(f"{address} could not do it ({text}); this is a defect: please report it")


def unreachable(error: BaseException, address: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"{address} cannot be reached ({str(error) or type(error).__name__}); nothing was written: "
        "the store connects again by itself once the server is back"
    )


def unknown_fate(error: BaseException, address: str) -> AnswerLost:
    """The command had been sent: it was carried out, or not, and the answer is lost."""
    return AnswerLost(
        f"the connection to {address} broke before its answer came "
        f"({str(error) or type(error).__name__}); whether the write was made is unknown: read the jobs "
        "again before you repeat it (an insertion that was made clashes, a change is not made twice)"
    )


@contextlib.contextmanager
def text_refused() -> Iterator[None]:
    """Around packing: a text that is no UTF-8 (a lone surrogate) cannot be stored."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise StoreError(f"a text cannot be stored: {error}; nothing was written") from error


def _text(error: BaseException) -> str:
    """redis-py cuts the code off some errors; their class stands for it."""
    text = str(error)
    for kind, code in _CODES:
        if isinstance(error, kind) and not text.startswith(code):
            return f"{code} {text}"
    return text


_CODES: tuple[tuple[type[Exception], str], ...] = (
    (redis_errors.ReadOnlyError, "READONLY"),
    (redis_errors.OutOfMemoryError, "OOM"),
    (redis_errors.NoPermissionError, "NOPERM"),
    (redis_errors.AuthenticationError, "NOAUTH"),
    # Of a cluster. The first of those that fit counts, so the narrower class comes first.
    (redis_errors.MasterDownError, "MASTERDOWN"),
    (redis_errors.ClusterDownError, "CLUSTERDOWN"),
    (redis_errors.TryAgainError, "TRYAGAIN"),
    (redis_errors.MovedError, "MOVED"),
    (redis_errors.AskError, "ASK"),
)
