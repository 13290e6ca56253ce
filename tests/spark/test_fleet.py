"""Fleets on the shared session: drain, stop flag, restarts, and applications that do not run there."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from headrace import JobManager, JobSpec, State, connect
from headrace.errors import FleetFailed, FleetNotFound, FleetRunning, InvalidInput, InvalidLimit
from headrace.model import EventKind
from headrace.spark import fleet
from headrace.spark.fleet import Fleet, FleetState, FleetStatus, status
from headrace.spark.fleet.names import Place, place_of, worker_name
from headrace.spark.fleet.plan import patient_master, shared_url
from headrace.spark.fleet.record import FleetRecord
from headrace.stores.base import EventQuery
from headrace.worker import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODULE = """
import asyncio, os
from headrace import Headrace, Policy

app = Headrace("memory:", policies=Policy(lease_seconds=2.0))

@app.task
async def quick(n: int) -> int:
    return os.getpid()

@app.task
async def slow(n: int) -> int:
    await asyncio.sleep(0.2)
    return os.getpid()
"""
SETTINGS = Settings(concurrency=2, batch=4, poll_seconds=0.2, grace_seconds=5.0)

UNHELD = {State.COMPLETED, State.PENDING, State.RETRYING}
"""Retrying: given back before its handler started."""

_numbers = itertools.count(1)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Writes an application into the present folder and gives its place; no module is loaded twice."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(text: str) -> str:
        name = f"fleet_app_{os.getpid()}_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(text)
        return f"{name}:app"

    return write


async def submit(url: str, type_: str, jobs: int) -> None:
    async with await connect(url) as manager:
        await manager.submit_many(
            [JobSpec(type=type_, payload={"n": n}, lease_seconds=2.0) for n in range(jobs)]
        )


async def states(url: str) -> dict[State, int]:
    async with await connect(url) as manager:
        return {state: jobs for state, jobs in (await manager.stats()).states.items() if jobs}


async def ends(url: str) -> Counter[tuple[str, str]]:
    """How often each job went through each kind of event."""
    async with await connect(url) as manager:
        events = await manager.store.events(EventQuery(limit=10_000))
        return Counter((event.job_id, event.kind) for event in events)


def wait_for(url: str, what: Callable[[JobManager], Awaitable[bool]], seconds: float = 60) -> None:
    """Until the coroutine that `what` gives says yes."""

    async def look() -> None:
        async with await connect(url) as manager, asyncio.timeout(seconds):
            while not await what(manager):  # noqa: ASYNC110 - it happens in other processes
                await asyncio.sleep(0.05)

    asyncio.run(look())


def completed_at_least(jobs: int) -> Callable[[JobManager], Awaitable[bool]]:
    async def enough(manager: JobManager) -> bool:
        return (await manager.stats()).states[State.COMPLETED] >= jobs

    return enough


@pytest.mark.long
def test_a_stopped_fleet_holds_nothing_and_goes_on_when_it_is_started_again(
    spark: SparkSession, durable_url: str, module: Callable[[str], str]
) -> None:
    asyncio.run(submit(durable_url, "slow", 40))
    described = Fleet(
        place=module(MODULE), name="shop", tasks=2, url=durable_url, settings=SETTINGS
    )
    told: list[FleetStatus] = []
    running = fleet.start(described, given=spark, on_status=told.append)
    wait_for(durable_url, completed_at_least(4))

    async def look_and_stop() -> FleetStatus:
        async with await connect(durable_url) as manager:
            seen = await fleet.fleet_status(manager, "shop")
            await fleet.stop(manager, "shop")
            return seen

    seen = asyncio.run(look_and_stop())
    assert seen.state is FleetState.RUNNING
    assert seen.total("completed") >= 4
    assert {one.worker for one in seen.workers if one.worker} <= {
        worker_name("shop", seen.run, Place(task, 0)) for task in (0, 1)
    }
    ended = running.wait()
    assert ended.state is FleetState.ENDED
    assert ended.total("holding") == 0
    assert told[-1] == ended
    left = set(asyncio.run(states(durable_url)))
    assert State.COMPLETED in left
    assert left <= UNHELD

    # The flag is set in the store: a new start must clear it.
    again = fleet.run(
        Fleet(
            place=described.place,
            name="shop",
            tasks=2,
            url=durable_url,
            settings=SETTINGS,
            drain=True,
        ),
        given=spark,
    )
    assert again.run != ended.run
    assert asyncio.run(states(durable_url)) == {State.COMPLETED: 40}
    assert ended.total("completed") + again.total("completed") == 40
    counts = asyncio.run(ends(durable_url))
    assert {counts[job, EventKind.COMPLETED] for job, _ in counts} == {1}
    assert not [kind for _, kind in counts if kind in (EventKind.LOST, EventKind.RETRYING)]


@pytest.mark.long
def test_a_killed_worker_is_started_again_and_its_jobs_are_not_lost(
    spark: SparkSession, tmp_path: Path, module: Callable[[str], str]
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    asyncio.run(submit(url, "slow", 30))
    running = fleet.start(
        Fleet(place=module(MODULE), tasks=1, name="k", url=url, settings=SETTINGS, drain=True),
        given=spark,
    )
    wait_for(url, completed_at_least(2))

    async def pid() -> int:
        async with await connect(url) as manager:
            (job,) = (await manager.find(states=[State.COMPLETED], limit=1)).jobs
            return int(job.result)

    os.kill(asyncio.run(pid()), signal.SIGKILL)
    ended = running.wait()
    assert asyncio.run(states(url)) == {State.COMPLETED: 30}
    (worker,) = ended.workers
    assert worker.attempt == 1
    assert worker.lost >= 1
    counts = asyncio.run(ends(url))
    assert {counts[job, EventKind.COMPLETED] for job, _ in counts} == {1}


@pytest.mark.long
def test_a_worker_that_is_hung_up_on_finishes_what_it_holds(
    spark: SparkSession, tmp_path: Path, module: Callable[[str], str]
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    asyncio.run(submit(url, "slow", 30))
    running = fleet.start(
        Fleet(place=module(MODULE), tasks=1, name="hup", url=url, settings=SETTINGS), given=spark
    )
    wait_for(url, completed_at_least(2))

    async def pid() -> int:
        async with await connect(url) as manager:
            (job,) = (await manager.find(states=[State.COMPLETED], limit=1)).jobs
            return int(job.result)

    os.kill(asyncio.run(pid()), signal.SIGHUP)
    ended = running.wait()
    assert ended.state is FleetState.ENDED
    assert ended.total("holding") == ended.total("lost") == 0
    left = set(asyncio.run(states(url)))
    assert State.COMPLETED in left
    assert left <= UNHELD


@pytest.mark.long
def test_an_application_that_does_not_load_on_an_executor_ends_the_fleet_at_once(
    spark: SparkSession, tmp_path: Path, module: Callable[[str], str]
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    place = module(
        "from pyspark import TaskContext\n"
        "if TaskContext.get() is not None:\n"
        "    import a_module_that_executors_lack\n" + MODULE
    )
    asyncio.run(submit(url, "quick", 1))
    start = time.monotonic()
    with pytest.raises(FleetFailed, match="a_module_that_executors_lack"):
        fleet.run(Fleet(place=place, name="bad", tasks=2, url=url), given=spark)
    assert time.monotonic() - start < 20

    async def look() -> FleetStatus:
        async with await connect(url) as manager:
            return await fleet.fleet_status(manager, "bad")

    status = asyncio.run(look())
    assert status.state is FleetState.FAILED
    assert asyncio.run(states(url)) == {State.PENDING: 1}


@pytest.mark.long
def test_an_application_that_kills_its_process_ends_the_fleet(
    spark: SparkSession, tmp_path: Path, module: Callable[[str], str]
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    place = module(
        "import os\n"
        "from pyspark import TaskContext\n"
        "if TaskContext.get() is not None:\n"
        "    os._exit(3)\n" + MODULE
    )
    with pytest.raises(FleetFailed, match="fleet crash: Spark gave the fleet up"):
        fleet.run(Fleet(place=place, name="crash", tasks=1, url=url), given=spark)


@pytest.mark.long
def test_a_name_belongs_to_one_driver(
    spark: SparkSession, tmp_path: Path, module: Callable[[str], str]
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    described = Fleet(place=module(MODULE), name="one", tasks=1, url=url, settings=SETTINGS)
    running = fleet.start(described, given=spark)
    try:
        with pytest.raises(FleetRunning, match="fleet one runs already"):
            fleet.start(described, given=spark)
    finally:
        running.stop()
        assert running.wait().state is FleetState.ENDED


@pytest.mark.long
def test_a_fleet_drains_its_own_tenant(
    spark: SparkSession, tmp_path: Path, module: Callable[[str], str]
) -> None:
    """That of the application, unless another is asked for: what others have waiting is not its work."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    place = module(MODULE.replace('"memory:",', '"memory:", tenant="acme",'))

    async def fill() -> None:
        async with await connect(url) as manager:
            await manager.submit_many(
                [
                    JobSpec(type="quick", payload={"n": 1}, tenant=tenant)
                    for tenant in ("acme", "other")
                ]
            )

    asyncio.run(fill())
    running = fleet.start(
        Fleet(place=place, name="own", tasks=1, url=url, settings=SETTINGS, drain=True), given=spark
    )
    end = time.monotonic() + 30
    while not running.has_ended and time.monotonic() < end:
        time.sleep(0.1)
    drained = running.has_ended
    running.stop()
    assert running.wait().total("completed") == 1
    assert drained
    assert asyncio.run(states(url)) == {State.COMPLETED: 1, State.PENDING: 1}


@pytest.mark.long
def test_a_driver_that_fails_leaves_no_workers_behind(
    spark: SparkSession, tmp_path: Path, module: Callable[[str], str]
) -> None:
    """Whoever is told the status may fail, such as a pipe that nobody reads any more."""
    url = f"sqlite:///{tmp_path}/jobs.db"

    def broken(_: FleetStatus) -> None:
        raise BrokenPipeError("nobody reads")

    described = Fleet(place=module(MODULE), name="left", tasks=1, url=url, settings=SETTINGS)
    running = fleet.start(described, given=spark, on_status=broken)
    with pytest.raises(BrokenPipeError):
        running.wait()
    tracker = spark.sparkContext.statusTracker()
    end = time.monotonic() + 30
    while tracker.getActiveJobsIds() and time.monotonic() < end:
        time.sleep(0.1)
    assert not tracker.getActiveJobsIds()

    async def look() -> FleetStatus:
        async with await connect(url) as manager:
            return await fleet.fleet_status(manager, "left")

    status = asyncio.run(look())
    assert status.state is FleetState.FAILED
    assert "nobody reads" in str(status.failure)


def test_an_unknown_fleet_cannot_be_stopped(tmp_path: Path) -> None:
    async def stop() -> None:
        async with await connect(f"sqlite:///{tmp_path}/jobs.db") as manager:
            await fleet.stop(manager, "nobody")

    with pytest.raises(FleetNotFound):
        asyncio.run(stop())


def test_what_can_never_work_is_refused_before_anything_starts(
    module: Callable[[str], str],
) -> None:
    with pytest.raises(InvalidInput, match="memory:"):
        fleet.run(Fleet(place=module(MODULE)))
    with pytest.raises(InvalidInput, match=r"no module .*; nothing was started"):
        fleet.run(Fleet(place="there_is_no_such:app"))
    with pytest.raises(InvalidInput, match=r"no tasks: .*; nothing was started"):
        fleet.run(Fleet(place=module("from headrace import Headrace\napp = Headrace()\n")))
    with pytest.raises(InvalidLimit, match=r"local\[4\]"):
        patient_master("local[2]", 4)


def test_masters_and_urls_are_made_fit_for_executors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert patient_master("local[2]", 2) == patient_master("local[2,1]", 2) == "local[2,1000]"
    assert patient_master("spark://h:7077", 50) == "spark://h:7077"
    assert shared_url("sqlite:///jobs.db?synchronous=normal") == (
        f"sqlite:///{tmp_path}/jobs.db?synchronous=normal"
    )
    assert shared_url("sqlite:////a/jobs.db") == "sqlite:////a/jobs.db"
    assert shared_url("redis://h/0") == "redis://h/0"


def test_a_workers_name_says_where_it_is() -> None:
    name = worker_name("a/b", "0f", Place(3, 1))
    assert place_of(name, "a/b", "0f") == Place(3, 1)
    assert place_of(name, "a", "b") is None
    assert place_of(name, "a/b", "1f") is None
    assert place_of("host-12-ab", "a/b", "0f") is None


async def test_a_driver_counts_a_bounded_number_of_events_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever others write meanwhile: it must beat, and pass a stop on."""
    monkeypatch.setattr(status, "PAGE_EVENTS", 10)
    async with await connect("memory:") as manager:
        await manager.submit_many([JobSpec(type="t") for _ in range(100)])
        now = manager.clock.now()
        found = FleetRecord(
            run="r",
            place="m:app",
            master="local[1]",
            tasks=1,
            started_at=now,
            beat_at=now,
            cursor="",
        )
        cursors = []
        for _ in range(3):
            cursor, _ = await status.count_on(manager, "f", found, pages=4)
            found = replace(found, cursor=cursor)
            cursors.append(len(await manager.events(after=cursor)))
    assert cursors == [60, 20, 0]
