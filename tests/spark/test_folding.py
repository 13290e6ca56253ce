"""Folding by columns against folding event by event, over histories that a real manager made."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.history import attempts as attempts_plainly
from headrace.history import fold as fold_plainly
from headrace.model import Event, EventKind, State
from headrace.spark.folding import JOBS, LEVELS, attempts_of, fold, follows_on, levels_summed
from headrace.spark.schemas import ATTEMPTS, EVENTS
from headrace.stores.memory import MemoryStore
from tests.spark import oracle
from tests.spark.wild import all_events, table_of, wild_on


def history(seed: int, steps: int) -> list[Event]:
    async def made() -> list[Event]:
        store = MemoryStore()
        await (await wild_on(store, seed)).steps(steps)
        return await all_events(store)

    return asyncio.run(made())


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    trimmed=st.integers(0, 30),
    repeated=st.integers(0, 20),
    lost=st.integers(0, 3),
)
def test_columns_give_what_plain_python_gives(
    seed: int, trimmed: int, repeated: int, lost: int
) -> None:
    events = history(seed, 120)[trimmed:]
    dice = random.Random(seed)
    for _ in range(min(lost, len(events))):
        events.pop(dice.randrange(len(events)))
    given_ = events + dice.sample(events, min(repeated, len(events)))
    dice.shuffle(given_)
    folded = fold(table_of(given_))
    assert folded.jobs.schema == JOBS
    assert folded.attempts.schema == ATTEMPTS
    assert oracle.rows_of(folded.jobs, "last_seq") == oracle.jobs(events)
    assert oracle.rows_of(folded.attempts, "leased_seq") == oracle.attempts(events)
    assert attempts_of(table_of(given_)).equals(folded.attempts)


@pytest.mark.parametrize("seed", range(8))
def test_attempts_agree_with_those_that_the_manager_tells(seed: int) -> None:
    """Of the last life of each job."""
    events = history(seed, 200)
    rows = fold(table_of(events)).attempts.to_pylist()
    of_lease = ("attempt", "worker", "leased_at", "wait_us")
    of_end = ("ended_at", "outcome", "run_us", "category", "code", "message", "result_bytes")
    same = of_lease + of_end
    seen = 0
    for life in oracle.lives_of(events):
        born = life[0].seq
        ours = [{name: getattr(one, name) for name in same} for one in attempts_plainly(life)]
        theirs = sorted(
            (row for row in rows if row["born_seq"] == born), key=lambda row: row["leased_seq"]
        )
        assert ours == [{name: row[name] for name in same} for row in theirs]
        seen += len(ours)
    assert seen > 20


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, 120), min_size=1, max_size=4))
def test_rows_that_events_follow_on_go_on_to_what_all_events_give(
    seed: int, cuts: list[int]
) -> None:
    """Batch by batch, from rows: the other way in."""
    events = history(seed, 120)
    jobs, attempts = JOBS.empty_table(), ATTEMPTS.empty_table()
    levels = [LEVELS.empty_table()]
    places = sorted({0, *(min(cut, len(events)) for cut in cuts), len(events)})
    for start, end in itertools.pairwise(places):
        batch = table_of(events[start:end])
        latest = latest_of(jobs)
        assert set(follows_on(batch, latest).to_pylist()) == {
            event.job_id for event in events[start:end]
        }
        folded = fold(batch, latest, attempts.filter(pc.is_null(attempts["ended_seq"])))
        jobs = replaced(jobs, folded.jobs, ["job_id", "born_seq"])
        attempts = replaced(attempts, folded.attempts, ["leased_seq"])
        levels.append(folded.levels)
    assert oracle.rows_of(jobs, "last_seq") == oracle.jobs(events)
    assert oracle.rows_of(attempts, "leased_seq") == oracle.attempts(events)
    whole = fold(table_of(events)).levels
    keys = [("queue", "ascending"), ("minute", "ascending")]
    assert levels_summed(pa.concat_tables(levels)).sort_by(keys).equals(whole.sort_by(keys))


def latest_of(jobs: pa.Table) -> pa.Table:
    """Of each job the latest life, if it may go on."""
    last = jobs.group_by("job_id").aggregate([("last_seq", "max")])["last_seq_max"]
    return jobs.filter(pc.is_in(jobs["last_seq"], value_set=last.combine_chunks()))


def replaced(rows: pa.Table, fresh: pa.Table, key: list[str]) -> pa.Table:
    """With these in place of those of the same key."""
    kept = [
        row
        for row in rows.to_pylist()
        if not any(
            all(row[name] == one[name] for name in key) for one in fresh.select(key).to_pylist()
        )
    ]
    return pa.concat_tables([pa.Table.from_pylist(kept, schema=rows.schema), fresh])


def test_what_does_not_follow_on_is_known() -> None:
    events = [event for event in history(3, 200) if event.job_id != "gone"]
    jobs = fold(table_of(events[:100])).jobs
    rest = events[100:]
    latest = latest_of(jobs)
    told = table_of(rest)
    assert set(follows_on(told, latest).to_pylist()) == {event.job_id for event in rest}
    # Without one of its events a job no longer goes on; others do. So without its row.
    ids = Counter(event.job_id for event in rest)
    name = next(one for one, count in ids.items() if count > 2)
    of_job = [event for event in rest if event.job_id == name]
    holed = [event for event in rest if event is not of_job[1]]
    lost = set(ids) - set(follows_on(table_of(holed), latest).to_pylist())
    assert lost == ({name} if of_job[2].kind is not EventKind.ENQUEUED else set())
    begun = {one for one in ids if _first(rest, one).kind is EventKind.ENQUEUED}
    assert set(follows_on(told, JOBS.empty_table()).to_pylist()) == begun
    twice = pa.concat_tables([told, told])
    assert set(follows_on(twice, latest).to_pylist()) == set(ids)


def _first(events: list[Event], job_id: str) -> Event:
    return next(event for event in events if event.job_id == job_id)


@pytest.mark.parametrize("seed", range(5))
def test_rows_agree_with_what_the_store_holds(seed: int) -> None:
    async def made() -> None:
        store = MemoryStore()
        wild = await wild_on(store, seed)
        await wild.steps(300)
        stored = {job.id: job for job in (await wild.manager.find(limit=1000)).jobs}
        rows = fold(table_of(await all_events(store))).jobs.to_pylist()
        latest = {row["job_id"]: row for row in sorted(rows, key=lambda row: row["last_seq"])}
        assert stored
        for name, job in stored.items():
            for field in [
                "state",
                "version",
                "attempt",
                "failures",
                "losses",
                "created_at",
                "run_at",
                "updated_at",
                "started_at",
                "finalized_at",
                "assignee",
                "assigned_at",
                "tenant",
                "queue",
                "type",
                "priority",
                "key",
                "expires_at",
            ]:
                assert latest[name][field] == getattr(job, field), (name, field)
            assert tuple(latest[name]["tags"]) == job.tags
            if job.failure is not None:
                assert latest[name]["message"] == job.failure.message

    asyncio.run(made())


def test_the_histories_hold_what_they_should() -> None:
    """Otherwise the tests above would show little."""
    events = [event for seed in range(12) for event in history(seed, 300)]
    kinds = Counter(event.kind for event in events)
    assert set(kinds) == set(EventKind)
    late = {(event.before, event.after) for event in events}
    assert (State.LOST, State.COMPLETED) in late
    assert (State.ABANDONED, State.COMPLETED) in late
    for seed in range(12):
        of_seed = history(seed, 300)
        lives = Counter(life[0].job_id for life in oracle.lives_of(of_seed))
        if max(lives.values()) > 1:
            break
    else:
        pytest.fail("no id was used again")


def test_nothing_folds_to_nothing() -> None:
    folded = fold(EVENTS.empty_table())
    assert folded.jobs.num_rows == folded.attempts.num_rows == 0
    assert folded.jobs.schema == JOBS
    assert folded.levels.schema == LEVELS
    assert follows_on(EVENTS.empty_table(), JOBS.empty_table()).to_pylist() == []


def test_agrees_with_the_fold_of_the_model() -> None:
    events = history(3, 200)
    rows = {row["last_seq"]: row for row in fold(table_of(events)).jobs.to_pylist()}
    for life in oracle.lives_of(events):
        for name, value in fold_plainly(life).items():
            wanted = list(value) if isinstance(value, tuple) else value
            assert rows[life[-1].seq][name] == wanted, name
