"""Jobs and events as Redis holds them: exact, both ways."""

from __future__ import annotations

from datetime import UTC, datetime

from headrace.model import EventKind, State
from headrace.stores.redis import RedisStore, rows
from headrace.stores.redis.codes import KIND_CODE, STATE_CODE
from headrace.stores.redis.scripts import parts
from tests.stores.redis.jobs import NOW, draft, insert


def test_every_word_has_a_letter_of_its_own() -> None:
    assert STATE_CODE.keys() == set(State)
    assert len(set(STATE_CODE.values())) == len(State)
    assert KIND_CODE.keys() == set(EventKind)
    assert len(set(KIND_CODE.values())) == len(EventKind)


def test_the_scripts_read_rows_at_the_same_places() -> None:
    names = {"B": "B", "c": "c1", "I": "I4", "q": "i8"}
    head = ">I4BI8" + "".join(names[code] for code in rows.HEAD.format[1:]) + "c0Hc0"
    assert f"local HEAD = '{head}'" in parts()["rows"]
    rest = ">" + "".join(names[code] for code in rows.REST.format[1:]) + "Hc0Hc0"
    assert f"local REST = '{rest}'" in parts()["rows"]
    assert f"local NONE = {rows.NONE_US} " in parts()["rows"]


async def test_times_that_no_double_holds_come_back_exact(store: RedisStore) -> None:
    """A score is a double and exact up to the year 2255; the row is exact for ever."""
    far = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    old = datetime(1066, 10, 14, 9, 0, 0, 1, tzinfo=UTC)
    (job,) = await insert(store, draft(run_at=far, expires_at=far, created_at=old, updated_at=old))
    assert (await store.get([job.id]))[job.id] == job
    assert await store.lapsed(NOW, 10) == []


async def test_neighbouring_microseconds_are_told_apart(store: RedisStore) -> None:
    """Near the present a microsecond is well above what a double can tell apart."""
    late, early = (NOW.replace(microsecond=n) for n in (999_999, 999_998))
    jobs = await insert(store, draft(run_at=late), draft(run_at=early))
    from tests.stores.redis.jobs import request

    assert await store.claim(request(2, now=NOW)) == []
    (first,) = await store.claim(request(2, now=early))
    assert first.id == jobs[1].id
    (second,) = await store.claim(request(2, now=late))
    assert second.id == jobs[0].id


async def test_large_values_come_back_whole(store: RedisStore) -> None:
    large = b'"' + b"x" * 3_000_000 + b'"'
    jobs = await insert(
        store,
        *(
            draft(payload_json=large, tags=tuple(f"{n:03}" + "ü" * 250 for n in range(64)))
            for _ in range(8)
        ),
    )
    from headrace.stores.base import Query

    assert list(await store.find(Query())) == list(jobs)
