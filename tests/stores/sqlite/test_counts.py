"""The counts and indexes that writes keep by hand agree with the jobs, whatever was done to them."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from headrace import lifecycle
from headrace.errors import Refusal
from headrace.model import CLAIMABLE, Category, Failure, Job, Priority, State
from headrace.policy import CancelMode
from headrace.stores.base import Commit, Query
from headrace.stores.sqlite import SqliteStore
from tests.stores.sqlite.samples import NOW, insert, new_job, request, rows

TAGS = ("a", "b", "c")


def random_job(dice: random.Random, now: datetime) -> Job:
    return new_job(
        tenant=dice.choice(["t1", "t2"]),
        queue=dice.choice(["q1", "q2"]),
        type=dice.choice(["x", "y"]),
        priority=dice.choice(list(Priority)),
        limit_key=dice.choice([None, "k1", "k2", "k3"]),
        tags=tuple(sorted(dice.sample(TAGS, dice.randrange(3)))),
        run_at=now + timedelta(seconds=dice.choice([0, 0, 30])),
        max_attempts=dice.choice([None, 1, 3]),
    )


def random_commands(dice: random.Random, job: Job, now: datetime) -> list[lifecycle.Command]:
    token = job.token
    commands: list[lifecycle.Command] = [
        lifecycle.Complete(token=token),
        lifecycle.Fail(
            token=token,
            failure=Failure("no", Category.TEMPORARY),
            retry=dice.random() < 0.8,
            retry_after=dice.choice([0, 20]),
        ),
        lifecycle.Snooze(token=token, until=now + timedelta(seconds=10)),
        lifecycle.Release(token=token),
        lifecycle.Cancel(mode=dice.choice(list(CancelMode))),
        lifecycle.Expire(),
        lifecycle.Abandon(),
        lifecycle.Outlive(),
    ]
    return dice.sample(commands, len(commands))


async def move_some(
    store: SqliteStore, dice: random.Random, jobs: list[Job], now: datetime
) -> None:
    changes = []
    for job in jobs:
        for command in random_commands(dice, job, now):
            try:
                changes.append(lifecycle.apply(job, command, now))
                break
            except Refusal:
                continue
    await store.commit(Commit(changes=changes))


@pytest.mark.parametrize("seed", range(4))
async def test_after_random_writes(store: SqliteStore, path: Path, seed: int) -> None:
    dice = random.Random(seed)
    now = NOW
    states: set[State] = set()
    for _ in range(60):
        now += timedelta(seconds=dice.choice([0, 5]))
        await insert(store, *(random_job(dice, now) for _ in range(dice.randrange(1, 8))))
        tags = dice.sample(TAGS, dice.randrange(2))
        await store.claim(request(dice.randrange(6), now=now, tags=tags))
        jobs = list(await store.find(Query(limit=10_000)))
        states |= {job.state for job in jobs}
        await move_some(store, dice, dice.sample(jobs, min(6, len(jobs))), now)
        gone = [job for job in dice.sample(jobs, min(9, len(jobs))) if job.is_terminal]
        await store.delete({job.id: job.version for job in gone})
    jobs = list(await store.find(Query(limit=10_000)))
    assert len(states) >= 8
    check_counts(path)
    check_lanes(path)
    check_tags(path, jobs)
    check_tallies([tally.jobs for tally in await store.count(now)], jobs)
    for table in ("payloads", "results", "notes"):
        assert rows(path, f"SELECT seq FROM {table} EXCEPT SELECT seq FROM jobs") == []


def check_counts(path: Path) -> None:
    grouped = rows(
        path, "SELECT lane, state, count(*), sum(failures) FROM jobs GROUP BY lane, state"
    )
    jobs = Counter({(lane, state): count for lane, state, count, _ in grouped})
    failures = Counter({(lane, state): failed for lane, state, _, failed in grouped})
    for state in State:
        for lane, count, failed in rows(path, f"SELECT id, {state}, {state}_failures FROM lanes"):
            assert (count, failed) == (jobs[lane, state], failures[lane, state])


def check_lanes(path: Path) -> None:
    """Lanes with a limit key are those of jobs; events name lanes without one."""
    of_jobs = set(rows(path, "SELECT lane FROM jobs"))
    keyed = set(rows(path, "SELECT id FROM lanes WHERE limit_key IS NOT NULL"))
    assert keyed <= of_jobs <= set(rows(path, "SELECT id FROM lanes"))
    assert set(rows(path, "SELECT lane FROM events")) == set(
        rows(path, "SELECT id FROM lanes WHERE limit_key IS NULL")
    )
    (last,) = rows(path, "SELECT seq FROM sqlite_sequence WHERE name = 'lanes'")
    assert last[0] > len(rows(path, "SELECT id FROM lanes"))  # some were removed


def check_tags(path: Path, jobs: list[Job]) -> None:
    assert set(rows(path, "SELECT tag, seq FROM job_tags")) == {
        (tag, job.seq) for job in jobs for tag in job.tags
    }
    stored = rows(path, "SELECT tags, lane, run_at, seq, state FROM jobs")
    assert set(rows(path, "SELECT tag, lane, run_at, seq FROM ready_tags")) == {
        (tag, lane, run_at, seq)
        for tags, lane, run_at, seq, state in stored
        if State(state) in CLAIMABLE
        for tag in json.loads(tags)
    }


def check_tallies(tallied: list[int], jobs: list[Job]) -> None:
    grouped = Counter((job.tenant, job.queue, job.state) for job in jobs)
    assert tallied == [count for _, count in sorted(grouped.items())]
