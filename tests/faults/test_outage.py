"""The server is killed under real workers and stays away for longer than a store waits: they go on."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pytest

from headrace import JobManager, JobSpec, connect
from headrace.errors import StoreUnavailable
from headrace.model import TERMINAL, EventKind
from headrace.stores.postgres import connection as postgres
from headrace.stores.redis import connection as redis
from headrace.testing.checker import ClientLog, check, collect, read_client_logs
from tests.faults.app import LEASE_SECONDS, LOG_VARIABLE, POLICY
from tests.faults.fleet import SETTINGS
from tests.faults.observer import Observer
from tests.faults.plan import misfits
from tests.faults.processes import Processes, send, worker_command
from tests.stores.postgres.server import ENVIRONMENT, Server
from tests.stores.redis.server import Durable
from tests.worker.running import until

DOWN_SECONDS = 6.0
"""Past the patience of a store, so that workers meet the error, and past a lease."""
LONG_LEASE_SECONDS = 60.0
WORKERS = ("worker-1", "worker-2")
EACH = 4
"""Jobs of each kind that run at the time of the kill."""
BEFORE = 100
"""Jobs completed before the kill."""
BATCH = 10
UNENDED_MAX = 150
END_SECONDS = 60.0


class Producer:
    """Submits without end, does not run far ahead of the workers, and writes down what it heard."""

    def __init__(self, manager: JobManager, observer: Observer, log: ClientLog) -> None:
        self._manager = manager
        self._observer = observer
        self._log = log
        self._tickets = itertools.count()
        self.acknowledged: set[str] = set()
        self.stopped = False

    async def submit(self, specs: Sequence[JobSpec]) -> None:
        ticket = f"ticket-{next(self._tickets)}"
        self._log.asked(ticket, [one.id for one in specs], [None] * len(specs))
        ids = [job.id for job in (await self._manager.submit_many(specs)).jobs]
        self._log.answered(ticket, ids)
        self.acknowledged |= set(ids)

    async def run(self) -> None:
        """Until `stopped`. What was not acknowledged is left as it may be: stored, or not."""
        for number in itertools.count():
            if self.stopped:
                return
            with contextlib.suppress(StoreUnavailable):
                await self.submit([_work(f"job-{number}-{n}", n) for n in range(BATCH)])
            while len(self._observer.live) > UNENDED_MAX and not self.stopped:  # noqa: ASYNC110 - a log grows
                await asyncio.sleep(0.01)


@pytest.fixture(params=["postgresql", "redis"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server | Durable]:
    """A server of our own, with the durability a user would have."""
    if request.param == "postgresql" and ENVIRONMENT in os.environ:
        pytest.skip("only a server of our own may be killed")
    started = Server() if request.param == "postgresql" else Durable(tmp_path / "redis")
    try:
        yield started
    finally:
        started.stop()


@pytest.mark.timeout(240)
async def test_workers_outlive_their_server_and_every_job_is_done_once(
    server: Server | Durable, tmp_path: Path
) -> None:
    assert max(postgres.PATIENCE_SECONDS, redis.PATIENCE_SECONDS, LEASE_SECONDS) < DOWN_SECONDS
    folder = tmp_path / "clients"
    folder.mkdir()
    down, back = folder / "down", folder / "back"
    async with (
        Processes(folder, {LOG_VARIABLE: str(folder)}) as processes,
        await connect(server.url, policies=POLICY) as manager,
    ):
        observer = Observer(manager, random.Random(1))
        producer = Producer(manager, observer, ClientLog(folder / "producer.log"))
        command = worker_command(server.url, "tests.faults.app:app", *SETTINGS)
        workers = [await processes.start(name, *command) for name in WORKERS]
        kept = [_held(f"kept-{n}", down, LONG_LEASE_SECONDS) for n in range(EACH)]
        lost = [_held(f"lost-{n}", back, LEASE_SECONDS) for n in range(EACH)]
        late = [_work(f"late-{n}", n) for n in range(BATCH)]
        await producer.submit(kept + lost)
        await until(lambda: len(read_client_logs(folder).runs) == len(kept + lost))
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(_follow(observer))
            producing = group.create_task(producer.run())
            await until(lambda: observer.kinds[EventKind.COMPLETED] >= BEFORE)

            await asyncio.to_thread(server.kill)
            killed = time.monotonic()
            down.touch()
            with pytest.raises(StoreUnavailable):
                await producer.submit(late)
            await until(
                lambda: all("no jobs can be claimed" in processes.said(name) for name in WORKERS)
            )
            await asyncio.sleep(killed + DOWN_SECONDS - time.monotonic())
            back.touch()
            await asyncio.to_thread(server.start_again)

            await _all_claim(manager, await manager.tail(), [one.pid for one in workers])
            producer.stopped = True
            await producing
            await until(lambda: _all_ended(manager))
            reading.cancel()
        # The same processes as before: nobody starts another.
        assert [one.returncode for one in workers] == [None, None]
        for one in workers:
            send(one.pid, signal.SIGTERM)
        codes = [await asyncio.wait_for(one.wait(), END_SECONDS) for one in workers]
        history = await collect(
            manager,
            client=read_client_logs(folder),
            readings=[observer.reading],
            dice=random.Random(1),
            keys_released=POLICY.key_released_when_terminal,
        )
        assert codes == [0, 0]
        assert await processes.leftovers() == []
        assert processes.complaints() == []
        assert processes.count_lines("Traceback") == 0
    assert [str(one) for one in check(history)] == []
    assert list(misfits(history.jobs.values())) == []
    assert producer.acknowledged <= history.jobs.keys()
    assert not history.jobs.keys() & {one.id for one in late}, "it said that nothing was written"
    completions = Counter(
        event.job_id for event in history.events if event.kind is EventKind.COMPLETED
    )
    assert completions == dict.fromkeys(history.jobs, 1)
    # What ended while there was no server is recorded as it ended. What outlasted its lease was stopped,
    # for all its worker knew somebody else had it, and ran again.
    assert {history.jobs[str(one.id)].attempt for one in kept} == {1}
    assert all(history.jobs[str(one.id)].losses > 0 for one in lost)
    assert {run.said for one in lost for run in history.runs_of[str(one.id), 1]} == {None}


def _work(id: str, number: int) -> JobSpec:
    """A few milliseconds, or now and then half a second."""
    seconds = 0.5 if number == BATCH - 1 else 0.002 * number
    return JobSpec(type=("work", "work_in_thread")[number % 2], id=id, payload={"seconds": seconds})


def _held(id: str, path: Path, lease_seconds: float) -> JobSpec:
    return JobSpec(
        type="work_until", id=id, payload={"path": str(path)}, lease_seconds=lease_seconds
    )


async def _follow(observer: Observer) -> None:
    """Until cancelled; a reader, too, goes on from its cursor."""
    while True:
        with contextlib.suppress(StoreUnavailable):
            await observer.follow()


async def _all_claim(manager: JobManager, after: str, pids: Collection[int]) -> None:
    """Until each of these processes has claimed a job past the cursor."""
    left = set(pids)
    async with asyncio.timeout(END_SECONDS):
        async for event in manager.follow(after=after):
            if event.kind is EventKind.LEASED:
                left -= {pid for pid in left if f"-{pid}-" in (event.worker or "")}
            if not left:
                return


async def _all_ended(manager: JobManager) -> bool:
    states = (await manager.stats()).states
    return not any(count for state, count in states.items() if state not in TERMINAL)
