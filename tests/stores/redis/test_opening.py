"""What a url may say."""

from __future__ import annotations

import pytest

from headrace.errors import InvalidInput
from headrace.stores.redis import opening
from headrace.stores.redis.connection import Options


def _parse(url: str) -> Options:
    return opening.parse(url, prefix="headrace", relaxed_durability=False)


def test_a_plain_url() -> None:
    chosen = _parse("redis://example:6380/3")
    assert chosen.connection["host"] == "example"
    assert chosen.connection["port"] == 6380
    assert chosen.connection["db"] == 3
    assert (chosen.prefix, chosen.relaxed_durability) == ("headrace", False)


def test_options_of_the_store_and_of_the_connection() -> None:
    chosen = _parse(
        "redis://example/0?prefix=jobs&durability=relaxed&socket_timeout=2.5&max_connections=3"
    )
    assert (chosen.prefix, chosen.relaxed_durability) == ("jobs", True)
    assert (chosen.timeout_seconds, chosen.connections_max) == (2.5, 3)
    assert "socket_timeout" not in chosen.connection


def test_a_unix_socket() -> None:
    assert _parse("unix:///tmp/redis.sock?db=1").connection["path"] == "/tmp/redis.sock"


@pytest.mark.parametrize(
    "url",
    [
        "redis://example/0?decode_responses=true",
        "redis://example/0?retry_on_timeout=true",
        "redis://example/0?protocol=3",
        "redis://example/0?colour=blue",
        "redis://example/0?durability=strict",
        "redis://example/0?prefix=",
        "redis://example/0?prefix=a{b}",
        "redis://example/0?socket_timeout=soon",
        "http://example/0",
    ],
)
def test_what_cannot_work_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        _parse(url)


def test_messages_do_not_show_the_password() -> None:
    assert "secret" not in _parse("redis://user:secret@example/0").address
    with pytest.raises(InvalidInput) as caught:
        _parse("redis://user:secret@example/0?colour=blue")
    assert "secret" not in str(caught.value)
