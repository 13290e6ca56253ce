from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest

from headrace import JobManager, JobSpec, Policies, Policy, connect
from headrace.clock import ManualClock
from headrace.errors import Contention, StoreUnavailable
from headrace.maintenance import (
    DEFAULT_STEPS,
    TRIM_EVENTS,
    Done,
    Maintenance,
    Round,
    Step,
    steps_under,
)
from headrace.manager import upkeep
from headrace.model import State
from headrace.schedules import Cron, Every, Misfire
from headrace.stores.base import JobStore
from headrace.stores.memory import MemoryStore
from tests.unit.night import Night

JOB = JobSpec(type="report")


@contextlib.asynccontextmanager
async def running(
    managers: Sequence[JobManager],
    clock: ManualClock,
    every: Sequence[Step] = DEFAULT_STEPS,
    on_round: Callable[[Round], None] | None = None,
) -> AsyncIterator[Night]:
    """A loop per manager, on one night."""
    night, stop = Night(clock, len(managers) * len(every)), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for number, manager in enumerate(managers):
            loop = Maintenance(
                manager, every, on_round=on_round, dice=random.Random(number), rest=night.rest
            )
            group.create_task(loop.run(stop))
        try:
            yield night
        finally:
            stop.set()


def memory(clock: ManualClock, **options: Any) -> JobManager:
    return JobManager(MemoryStore(), clock=clock, **options)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "sqlite"])
async def ten(
    request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock
) -> AsyncIterator[list[JobManager]]:
    """Ten workers' managers on one store."""
    if request.param == "memory":
        store = MemoryStore()
        yield [JobManager(store, clock=clock) for _ in range(10)]
        return
    url = f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=normal"
    async with contextlib.AsyncExitStack() as stack:
        yield [await stack.enter_async_context(await connect(url, clock=clock)) for _ in range(10)]


# --- together ------------------------------------------------------------------------------------


async def test_ten_loops_make_one_job_of_each_tick(
    ten: list[JobManager], clock: ManualClock
) -> None:
    start = clock.now()
    await ten[0].schedule("minutely", Cron("* * * * *"), JobSpec(type="cron"))
    await ten[1].schedule("often", Every(20), JobSpec(type="every"), misfire=Misfire.ALL)
    created: Counter[str] = Counter()

    def count(round_: Round) -> None:
        assert round_.error is None
        created[round_.step] += round_.count

    async with running(ten, clock, on_round=count) as night:
        await night.pass_(301)
    jobs = (await ten[0].find(limit=1000)).jobs
    ticks = {kind: [job.run_at for job in jobs if job.type == kind] for kind in ("cron", "every")}
    assert sorted(ticks["cron"]) == [start + timedelta(minutes=n) for n in range(1, 6)]
    assert sorted(ticks["every"]) == [start + timedelta(seconds=20 * n) for n in range(1, 16)]
    assert 15 < created.pop("history") <= 20  # events: the last may not be counted yet
    others = {"reap": 0, "lifetimes": 0, "sweep": 0, "bulk": 0, "retention": 0}
    assert created == others | {"schedules": 20}
    # The first of ten random moments within a quarter of a second after the tick.
    assert max(job.created_at - job.run_at for job in jobs) < timedelta(seconds=0.25)


async def test_ten_loops_take_back_each_lease_once(
    ten: list[JobManager], clock: ManualClock
) -> None:
    await ten[0].submit_many([JobSpec(type="t", lease_seconds=7) for _ in range(20)])
    await ten[0].claim("gone", limit=20)
    async with running(ten, clock) as night:
        await night.pass_(7 + 5.5)
    events = await ten[0].events()
    assert sum(event.kind == "lost" for event in events) == 20
    assert (await ten[0].stats()).states[State.LOST] == 20


async def test_every_step_is_run_in_its_time(clock: ManualClock) -> None:
    policy = Policy(lifetime_seconds=100.0, keep_other_seconds=50.0)
    manager = memory(clock, policies=Policies(policy))
    await manager.submit(JobSpec(type="t", id="held", lease_seconds=30))
    await manager.claim("gone")
    await manager.submit(JobSpec(type="t", id="waits", after=["held"]))
    states: dict[float, list[str]] = {}
    start = clock.now()
    async with running([manager], clock) as night:
        for seconds in (29, 36, 99, 112, 149, 229):
            await night.pass_(seconds - (clock.now() - start).total_seconds())
            states[seconds] = [job.state for job in (await manager.find()).jobs]
    assert states == {
        29: ["running", "blocked"],
        36: ["lost", "blocked"],
        99: ["lost", "blocked"],
        112: ["dead", "dead"],
        149: ["dead", "dead"],
        229: [],
    }


# --- failures ------------------------------------------------------------------------------------


def step(name: str, run: Callable[[JobManager], Any], interval_seconds: float = 10.0) -> Step:
    async def call(manager: JobManager) -> Done:
        done = run(manager)
        return done if isinstance(done, Done) else Done(count=done)

    return Step(name=name, interval_seconds=interval_seconds, spread_seconds=1.0, run=call)


def failing(error: Exception | None) -> Callable[[JobManager], int]:
    def run(_: JobManager) -> int:
        if error is not None:
            raise error
        return 1

    return run


async def test_a_failing_step_backs_off_and_disturbs_no_other(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    rounds: list[Round] = []
    both = [step("bad", failing(ZeroDivisionError("no"))), step("good", failing(None))]
    async with running([memory(clock)], clock, both, rounds.append) as night:
        await night.pass_(600)
    good = [one for one in rounds if one.step == "good"]
    bad = [one for one in rounds if one.step == "bad"]
    assert 600 / 11 <= len(good) <= 600 / 10 + 1
    assert all(one.error is None and one.count == 1 for one in good)
    assert all(isinstance(one.error, ZeroDivisionError) for one in bad)
    # 1 + 2 + 4 + 8 + 16 + 32 seconds, then a minute each, all of them ±10 %
    assert 14 <= len(bad) <= 18
    failures = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(failures) == len(bad)
    first = cast("Any", failures[0])
    assert first.name == "headrace.maintenance"
    assert (first.step, first.failures, first.code) == ("bad", 1, "ZeroDivisionError")
    assert first.exc_info is not None


async def test_a_step_that_works_again_is_back_at_its_own_pace(clock: ManualClock) -> None:
    answers: list[Exception | None] = [Contention("x"), Contention("x"), None, Contention("x")]
    runs: list[float] = []
    start = clock.now()

    def run(manager: JobManager) -> int:
        runs.append((clock.now() - start).total_seconds())
        return failing(answers.pop(0) if answers else None)(manager)

    async with running([memory(clock)], clock, [step("s", run)]) as night:
        await night.pass_(30)
    gaps = [round(later - earlier) for earlier, later in itertools.pairwise(runs)]
    assert gaps[:2] == [1, 2]
    assert 10 <= gaps[2] <= 11
    assert gaps[3] == 1


async def test_a_store_that_cannot_be_reached_is_logged_once(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "headrace.maintenance")
    store = Gone(MemoryStore())
    async with running([JobManager(cast("JobStore", store), clock=clock)], clock) as night:
        await night.pass_(20)
        assert caplog.records == []
        store.gone = True
        await night.pass_(300)
        store.gone = False
        await night.pass_(120)
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert told == [
        ("WARNING", "maintenance waits for the store: the store is gone; nothing was written"),
        ("INFO", "the store answers again"),
    ]


class Gone:
    """A store that can go away, and that counts what it is asked."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self.gone = False
        self.asked: Counter[str] = Counter()

    def __getattr__(self, verb: str) -> Any:
        self.asked[verb] += 1
        if self.gone:
            raise StoreUnavailable("the store is gone; nothing was written")
        return getattr(self._store, verb)


async def test_a_listener_that_raises_is_logged_and_no_more(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Round] = []

    def on_round(round_: Round) -> None:
        heard.append(round_)
        raise ZeroDivisionError

    async with running([memory(clock)], clock, [step("s", failing(None))], on_round) as night:
        await night.pass_(100)
    assert len(heard) >= 9
    assert "on_round failed" in caplog.text


async def test_a_schedule_that_cannot_be_fired_is_told_once_per_trouble(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    payload = JobSpec(type="t", payload="x" * 50)
    await JobManager(store, clock=clock).schedule("heavy", Every(60), payload)
    strict = JobManager(store, clock=clock, policies=Policies(Policy(payload_bytes_max=10)))
    async with running([strict], clock) as night:
        await night.pass_(600)
    (record,) = caplog.records
    assert record.getMessage().startswith("schedule heavy was not fired: the payload is 52 bytes")


async def test_a_store_that_fails_while_firing_is_no_schedules_fault(clock: ManualClock) -> None:
    store = MemoryStore()
    manager = JobManager(store, clock=clock)
    await manager.schedule("s", Every(60), JOB)
    clock.advance(60)
    with (
        mock.patch.object(store, "insert", side_effect=StoreUnavailable("gone")),
        pytest.raises(StoreUnavailable),
    ):
        await manager.fire_schedules()
    assert len((await manager.fire_schedules()).jobs) == 1


# --- pace ----------------------------------------------------------------------------------------


async def test_an_idle_loop_asks_the_store_about_once_in_two_seconds(clock: ManualClock) -> None:
    store = Gone(MemoryStore())
    async with running([JobManager(cast("JobStore", store), clock=clock)], clock) as night:
        await night.pass_(3600)
    assert store.asked.pop("find") == 1  # the newest job, once
    assert store.asked.pop("put_record") <= 3600 / 60  # how far the clock has come
    assert store.asked.pop("events") <= 2  # whether there is anything to count into recent history
    assert set(store.asked) == {"lapsed", "outlived", "unseen", "records", "count", "tail"}
    store.asked["records"] -= 3600 // 15  # whether there is a bulk act to carry on
    assert sum(store.asked.values()) / 3600 < 0.55


async def test_schedules_that_are_not_due_cost_no_more_than_none(clock: ManualClock) -> None:
    store = Gone(MemoryStore())
    manager = JobManager(cast("JobStore", store), clock=clock)
    await manager.schedule("yearly", Cron("0 0 1 1 *", "Europe/Berlin"), JOB)
    async with running([manager], clock) as night:
        await night.pass_(3600)
    bulk_acts = 3600 / 15
    assert store.asked["records"] <= 3600 / 10 + 3600 / 60 + 2 + bulk_acts


async def test_a_new_schedule_is_noticed_and_its_ticks_are_waited_for(clock: ManualClock) -> None:
    manager = memory(clock)
    async with running([manager], clock) as night:
        await night.pass_(3)
        await manager.schedule("late", Every(15), JOB)
        await night.pass_(100)
    jobs = (await manager.find()).jobs
    assert len(jobs) == 6
    assert max(job.created_at - job.run_at for job in jobs) <= timedelta(seconds=0.25)


async def test_a_step_ended_by_its_limit_goes_on_at_once(clock: ManualClock) -> None:
    left = [3]

    def run(_: JobManager) -> Done:
        left[0] -= 1
        return Done(count=1, rest_seconds=0.0 if left[0] > 0 else None)

    async with running([memory(clock)], clock, [step("s", run)]) as night:
        await night.pass_(5)
    assert left == [0]


async def test_a_full_batch_is_followed_by_the_next_at_once(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "LIMIT", 2)
    manager = memory(clock)
    await manager.submit_many([JobSpec(type="t", lifetime_seconds=5.0) for _ in range(5)])
    clock.advance(5)
    rests = [(await upkeep.end_lifetimes(manager)).rest_seconds for _ in range(3)]
    assert rests == [0.0, 0.0, None]


async def test_rests_are_spread_so_that_hosts_do_not_all_come_at_once(clock: ManualClock) -> None:
    steady = step("s", failing(None))
    async with running([memory(clock) for _ in range(10)], clock, [steady]) as night:
        await night.pass_(60)
    begin, later = night.rests[:10], night.rests[10:]
    assert all(0 <= seconds <= 1 for seconds in begin)
    assert all(10 <= seconds <= 11 for seconds in later)
    assert len(set(begin)) == 10
    assert len(set(later)) == len(later)


@pytest.mark.parametrize(
    ("leases", "seconds"),
    [([30.0], 5.0), ([None], 5.0), ([300.0, 12.0], 2.0), ([1.0], 1.0), ([None, 6.6], 1.1)],
)
def test_leases_are_looked_at_six_times_as_often_as_they_lapse(
    leases: list[float | None], seconds: float
) -> None:
    default, *others = [Policy(lease_seconds=lease) for lease in leases]
    queues = {f"q{number}": policy for number, policy in enumerate(others)}
    assert upkeep.reap_interval(Policies(default, queues)) == pytest.approx(seconds)


async def test_the_log_is_trimmed_as_the_policies_say(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    manager = memory(clock, policies=Policies(keep_events_seconds=100.0))
    rounds: list[Round] = []
    for _ in range(3):
        await manager.submit(JOB)
        clock.advance(1)
    async with running([manager], clock, [TRIM_EVENTS], rounds.append) as night:
        await night.pass_(300)
        assert [one.count for one in rounds] == [0] * len(rounds)
        (told,) = (record for record in caplog.records if "no reader" in record.message)
        assert told.levelno == logging.WARNING
        await manager.reader_reached("lake", (await manager.events())[1].cursor)
        await night.pass_(70)
    assert sum(one.count for one in rounds) == 2
    assert len(await manager.events()) == 1


async def test_trimming_is_a_step_only_where_a_policy_says_how_long(clock: ManualClock) -> None:
    rounds = {
        keep: await Maintenance(memory(clock, policies=Policies(keep_events_seconds=keep))).once()
        for keep in (None, 0.0)
    }
    assert [one.step for one in rounds[None]] == [one.name for one in DEFAULT_STEPS]
    assert [one.step for one in rounds[0.0]] == [*(one.name for one in DEFAULT_STEPS), "events"]
    assert steps_under(Policies()) == DEFAULT_STEPS


def test_steps_have_names_of_their_own() -> None:
    assert len({one.name for one in (*DEFAULT_STEPS, TRIM_EVENTS)}) == len(DEFAULT_STEPS) + 1 == 8


# --- on a live clock -----------------------------------------------------------------------------


async def test_told_to_stop_it_ends_at_once(clock: ManualClock) -> None:
    stop = asyncio.Event()
    task = asyncio.create_task(Maintenance(memory(clock)).run(stop))
    await asyncio.sleep(0)
    stop.set()
    begin = time.monotonic()
    await asyncio.wait_for(task, 10)
    assert time.monotonic() - begin < 1


async def test_a_run_under_way_is_finished_before_it_ends(clock: ManualClock) -> None:
    stop, begun, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    finished = []

    async def run(_: JobManager) -> Done:
        begun.set()
        await go_on.wait()
        finished.append(1)
        return Done(count=0)

    slow = Step(name="slow", interval_seconds=0.0, spread_seconds=0.0, run=run)
    task = asyncio.create_task(Maintenance(memory(clock), [slow]).run(stop))
    await begun.wait()
    stop.set()
    go_on.set()
    await asyncio.wait_for(task, 10)
    assert finished == [1]


async def test_it_can_be_cancelled(clock: ManualClock) -> None:
    task = asyncio.create_task(Maintenance(memory(clock)).run(asyncio.Event()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_once_runs_every_step_in_order(clock: ManualClock) -> None:
    manager = memory(clock)
    await manager.schedule("s", Every(60), JOB)
    await manager.submit(JobSpec(type="t", lease_seconds=5))
    await manager.claim("gone")
    clock.advance(60)
    rounds = await Maintenance(manager).once()
    assert [(one.step, one.count) for one in rounds] == [
        ("reap", 1),
        ("lifetimes", 0),
        ("sweep", 0),
        ("schedules", 1),
        ("bulk", 0),
        ("history", 4),
        ("retention", 0),
    ]
    with pytest.raises(ZeroDivisionError):
        await Maintenance(manager, [step("bad", failing(ZeroDivisionError()))]).once()
