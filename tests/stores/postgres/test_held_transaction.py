"""A forgotten open transaction slows no claim, and no job is lost sight of because of how that is done."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from msgspec.structs import replace

from headrace import lifecycle
from headrace.model import Job
from headrace.stores.base import GATE, Commit, Record, Share
from headrace.stores.postgres import PostgresStore, marks
from headrace.stores.postgres.lanes import LaneKey
from tests.stores.postgres import backlog, held
from tests.stores.postgres.jobs import complete, draft, insert, request
from tests.stores.postgres.server import with_options, without_schema

LATER = datetime(2090, 1, 1, tzinfo=UTC)
"""Ahead of the server's clock, so that jobs due then did not come early."""


async def test_claims_stay_as_fast_while_jobs_pass(store: PostgresStore, postgres_url: str) -> None:
    await backlog.fill(store, 22_000)
    for tries_left in reversed(range(3)):
        async with held.snapshot(without_schema(postgres_url), _schema(store)):
            passed = await held.pass_through(store, 7_000)
        assert passed.full_probes > 0  # the transaction was in the way…
        assert passed.entries_most <= marks.EXCESS_MAX  # … and claims went around it
        if passed.last_seconds <= 2 * passed.first_seconds:
            return
        assert tries_left, passed  # a busy machine may spoil a measurement or two


async def _bloated(store: PostgresStore) -> None:
    """Make claims use marks: two thousand jobs pass under a snapshot that the caller holds."""
    await insert(store, *(_due(seconds) for seconds in range(2500)))
    for _ in range(20):
        await complete(store, await store.claim(request(100, now=_at(5000))), _at(5000))
    await store.claim(request(1, now=_at(5000)))
    assert store._claimer._marks[()]._level > 0


async def test_a_job_that_comes_back_is_next(store: PostgresStore, postgres_url: str) -> None:
    """Given back by another process, with a due time far before the mark."""
    (first,) = await insert(store, replace(_due(0), priority=1))
    (held_job,) = await store.claim(request(1, now=_at(1)))
    assert held_job.id == first.id
    async with held.snapshot(without_schema(postgres_url), _schema(store)):
        await _bloated(store)
        other = await PostgresStore.open(postgres_url)
        change = lifecycle.apply(held_job, lifecycle.Release(token=held_job.token), _at(5001))
        assert all((await other.commit(Commit(changes=[change]))).applied)
        await other.close()
        (next_job,) = await store.claim(request(1, now=_at(5002)))
        assert next_job.id == first.id


@pytest.mark.parametrize("level", [1, 2])
async def test_a_late_commit_is_found_in_bounded_time(
    store: PostgresStore, postgres_url: str, level: int
) -> None:
    """Its transaction stayed open while the claims moved on past its due time."""
    url = without_schema(postgres_url)
    slow = await asyncpg.connect(url)
    async with held.snapshot(url, _schema(store)):
        async with slow.transaction():
            view = store.on(slow)
            view._session.is_callers = False  # type: ignore[misc]  # as if on a connection of ours
            (late,) = await insert(view, _due(0))
            await _bloated(store)
        store._claimer._marks[()]._level = level
        assert late.id in await _claim_until(store, late.id)
    await slow.close()


async def test_early_jobs_are_found_in_bounded_time_even_when_they_are_what_is_in_the_way(
    store: PostgresStore, postgres_url: str
) -> None:
    (back,) = await insert(store, _due(0))
    (held_job,) = await store.claim(request(1, now=_at(1)))
    async with held.snapshot(without_schema(postgres_url), _schema(store)):
        await _bloated(store)
        store._claimer._marks[()]._level = 2
        store._claimer._marks[()]._marks[marks.Place(1, True)] = (_at(4000), 0)
        change = lifecycle.apply(held_job, lifecycle.Release(token=held_job.token), _at(5001))
        assert all((await store.commit(Commit(changes=[change]))).applied)
        assert back.id in await _claim_until(store, back.id)


async def test_lanes_between_those_with_marks_are_found(
    store: PostgresStore, postgres_url: str
) -> None:
    """New jobs in lanes of which no claim knows anything, on either side of the one with a mark."""
    lanes = [("first", None), ("default", None), ("last", None), ("last", "k")]
    await store._lanes.of([replace(_due(0), queue=queue, limit_key=key) for queue, key in lanes])
    async with held.snapshot(without_schema(postgres_url), _schema(store)):
        await _bloated(store)
        wish = request(9, now=_at(5002))
        for queue, key in lanes:
            (new,) = await insert(
                store, replace(_due(4999), queue=queue, limit_key=key, priority=1)
            )
            assert [job.id for job in await store.claim(replace(wish, limit=1))] == [new.id]
            assert store._claimer._marks[()].start(wish.now)  # still in use


@pytest.mark.parametrize("tags", [(), ("x",)])
async def test_claims_by_shares_go_around_what_has_passed(
    postgres_url: str, tags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lane is read from its mark on, and the gate from its last version on."""
    monkeypatch.setattr(marks, "FULL_PROBE_SECONDS", 1000.0)
    store = await PostgresStore.open(with_options(postgres_url, pool_size="1"))
    jobs = await insert(store, *(replace(_due(seconds), tags=tags) for seconds in range(2500)))
    assert await store.put_record(Record(kind=GATE, name="default"))
    wish = request(100, now=_at(5000), tags=tags)
    taken: list[str] = []

    async def claim() -> None:
        (head,) = await store.heads(wish)
        (gate,) = await store.records(GATE)
        lane = {name: getattr(head, name) for name in LaneKey._fields}
        rows = await store.claim_shares(wish, [Share(**lane, jobs=100)], [gate])
        await complete(store, rows or (), _at(5000))
        taken.extend(job.id for job in rows or ())

    async with held.snapshot(without_schema(postgres_url), _schema(store)):
        for _ in range(20):
            await claim()
        walked = ("ready_tags_pkey" if tags else "jobs_ready", "record_versions_pkey")
        before = await _entries_read(store)
        await claim()
        after = await _entries_read(store)
    assert taken == [job.id for job in jobs[:2100]]
    lane_entries, gate_entries = (after[index] - before[index] for index in walked)
    assert 200 <= lane_entries <= 600  # 100 for the heads, as many for the claim, and their tags
    assert 1 <= gate_entries <= 5
    await store.close()


async def _entries_read(store: PostgresStore) -> dict[str, int]:
    """By index, all that has been read since the beginning, by whatever connection."""
    async with store._pool.connection() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        rows = await connection.fetch(
            "SELECT indexrelname, idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = $1",
            _schema(store),
        )
    return {name: read for name, read in rows}  # noqa: C416 - rows are the driver's own type


async def _claim_until(store: PostgresStore, job_id: str) -> list[str]:
    """The ids claimed until this one came, or until it has taken too long."""
    got: list[str] = []
    end = time.monotonic() + 5
    while job_id not in got and time.monotonic() < end:
        got += [job.id for job in await store.claim(request(1, now=_at(6000)))]
        await asyncio.sleep(0.02)
    return got


def _at(seconds: float) -> datetime:
    return LATER + timedelta(seconds=seconds)


def _due(seconds: float) -> Job:
    moment = _at(seconds)
    return draft(
        created_at=moment, run_at=moment, updated_at=moment, lease_seconds=None, expires_at=None
    )


def _schema(store: PostgresStore) -> str:
    return store._sql.schema
