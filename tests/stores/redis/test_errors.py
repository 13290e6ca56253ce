"""What the server says, as redis-py hands it on: it cuts the code off the errors that it has a class for."""

from __future__ import annotations

import pytest
import redis.exceptions as redis_errors
from redis._parsers.base import BaseParser

from headrace.errors import StoreCorrupt, StoreError, StoreUnavailable
from headrace.stores.redis import errors


def _parsed(text: str) -> Exception:
    error = BaseParser.parse_error(text)  # type: ignore[no-untyped-call]  # redis-py leaves it out
    assert isinstance(error, Exception)
    return error


def _said(text: str) -> redis_errors.ResponseError:
    error = _parsed(text)
    assert isinstance(error, redis_errors.ResponseError)
    return error


@pytest.mark.parametrize(
    "text",
    [
        "ASK 3999 127.0.0.1:6381",
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
        "CLUSTERDOWN The cluster is down",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "TRYAGAIN Multiple keys request during rehashing of slot",
    ],
)
def test_what_passes_is_waited_for(text: str) -> None:
    assert errors.is_not_now(_said(text))


def test_a_server_that_loads_its_data_is_waited_for() -> None:
    loading = _parsed("LOADING Redis is loading the dataset in memory")
    assert isinstance(loading, redis_errors.RedisError)
    assert errors.is_not_now(loading)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("OOM command not allowed when used memory > 'maxmemory'.", StoreUnavailable),
        ("READONLY You can't write against a read only replica.", StoreUnavailable),
        ("NOPERM User default has no permissions", StoreUnavailable),
        ("MISCONF Errors writing to the AOF file", StoreUnavailable),
        ("NOREPLICAS Not enough good replicas to write.", StoreUnavailable),
        ("MOVED 3999 127.0.0.1:6381", StoreUnavailable),
        ("CORRUPT a waiting job has no row", StoreCorrupt),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", StoreCorrupt),
        ("ERR something else", StoreError),
    ],
)
def test_what_does_not_pass_is_told(text: str, kind: type[StoreError]) -> None:
    error = _said(text)
    assert not errors.is_not_now(error)
    told = errors.translate(error, "redis://here")
    assert type(told) is kind
    assert text.partition(" ")[2] in str(told)
