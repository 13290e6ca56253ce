"""Background Service: the pace of the configuration, and nothing that ends it but `stop`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any

from headrace.contracts.job_store import (
    AsyncEndpointError,
    BackgroundService,
    Id,
    IJobStore,
    Job,
    JobManager,
    JobManagerConfiguration,
    JobStatus,
    JobStore,
    MethodResult,
)
from headrace.contracts.presets import JOB_STORE
from headrace.errors import InvalidInput
from headrace.testing.conformance.job_store.factories import (
    claimed,
    data,
    done,
    in_status,
    open_manager,
    open_store,
    read,
    submitted,
)
from headrace.testing.conformance.job_store.suite import suite
from headrace.testing.conformance.kit import Env, raises

SERVICE = "Component Diagram: Background Service"
S = JobStatus
NEVER = timedelta(days=1)
SOON_SECONDS = 10.0
"""More than anything here takes on the slowest machine: it is waited for, not slept through."""


def pace(**fields: Any) -> JobManagerConfiguration:
    """Looks for jobs often, and for stale claims never, unless told otherwise."""
    given: dict[str, Any] = {"job_polling_interval_ms": 10, "stale_job_claim_check_interval": NEVER}
    return JobManagerConfiguration(**(given | fields))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_SECONDS):
        while not holds():  # noqa: ASYNC110 - what is waited for is anything
            await asyncio.sleep(0.002)


async def until_status(manager: JobManager, job_id: Id, status: JobStatus) -> Job:
    async with asyncio.timeout(SOON_SECONDS):
        while (job := await read(manager, job_id)).status is not status:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.005)
    return job


@asynccontextmanager
async def serving(
    manager: JobManager, handler: Callable[[Job], object], **options: Any
) -> AsyncIterator[BackgroundService]:
    """A service while the block lasts; if the case fails in it, handlers are not waited for."""
    async with BackgroundService(manager, handler, **options) as service:
        try:
            yield service
        except BaseException:
            await service.stop(seconds=0)
            raise


def left_over() -> list[str]:
    """The tasks that services have begun and that have not ended."""
    names = [task.get_name() for task in asyncio.all_tasks()]
    return [name for name in names if name.startswith("job-store-")]


@contextmanager
def quiet() -> Iterator[None]:
    """What is expected to be logged is not shown."""
    logger = logging.getLogger("headrace.contracts.job_store")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def answering(result: object) -> Callable[[Job], object]:
    """A handler that returns this, whatever the job."""

    def handle(_: Job) -> object:
        return result

    return handle


class Gate:
    """A handler that holds each job until it is opened, and counts."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.inside = 0
        self.most = 0
        self.cancelled = 0

    async def __call__(self, job: Job) -> str:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.inside -= 1
        return f"{job.id} done"


@suite.case(
    SERVICE, "it runs what is submitted, max_concurrent_jobs at once, and keeps the results"
)
async def _(env: Env) -> None:
    manager = await open_manager(env, pace(max_concurrent_jobs=3, max_claim_batch_size=2))
    ids = [(await submitted(manager)).id for _ in range(7)]
    gate = Gate()
    async with serving(manager, gate) as service:
        await until(lambda: gate.inside >= 3)
        await asyncio.sleep(0.05)  # several looks
        assert (gate.most, service.running) == (3, 3)
        assert data(await manager.get_job_statistics()).in_progress_count == 3
        gate.opened.set()
        for job_id in ids:
            job = await until_status(manager, job_id, S.COMPLETED)
            assert job.result == f"{job_id} done"
    assert (gate.most, gate.inside, service.running) == (3, 0, 0)


@suite.case(
    SERVICE, "it looks again every job_polling_interval_ms, and at once when a job has ended"
)
async def _(env: Env) -> None:
    quick = await open_manager(env, pace(job_polling_interval_ms=20))
    async with serving(quick, lambda job: job.payload):
        await asyncio.sleep(0.05)  # nothing is there yet
        job = await submitted(quick, payload="later")
        assert (await until_status(quick, job.id, S.COMPLETED)).result == "later"
    slow = JobManager(quick.store, pace(job_polling_interval_ms=3_600_000, max_concurrent_jobs=1))
    ids = [(await submitted(slow)).id for _ in range(3)]
    async with serving(slow, answering(None)) as service:
        for job_id in ids:
            await until_status(slow, job_id, S.COMPLETED)
        await until(lambda: service.running == 0)
        await asyncio.sleep(0.05)  # the look that the last one's end brings
        left = await submitted(slow)
        await asyncio.sleep(0.05)
        assert (await read(slow, left.id)).status is S.QUEUED  # the hour is not over


@suite.case(SERVICE, "two services on one store share the work, and each job is run once")
async def _(env: Env) -> None:
    backend = await env.manager(JOB_STORE)
    two = pace(max_concurrent_jobs=2, max_claim_batch_size=2)
    one, other = JobManager(JobStore(backend), two), JobManager(JobStore(backend), two)
    ids = [(await submitted(one)).id for _ in range(12)]
    run: list[tuple[str, Id]] = []

    def noting(name: str) -> Callable[[Job], object]:
        async def handle(job: Job) -> None:
            run.append((name, job.id))
            await asyncio.sleep(0.005)

        return handle

    async with serving(one, noting("one")), serving(other, noting("other")):
        for job_id in ids:
            await until_status(one, job_id, S.COMPLETED)
    assert sorted(str(job_id) for _, job_id in run) == sorted(map(str, ids))
    assert {name for name, _ in run} == {"one", "other"}


def _raises(job: Job) -> object:
    match job.payload:
        case "exit":
            raise SystemExit(3)
        case "cancelled":
            raise asyncio.CancelledError
        case "unstorable":
            return object()
        case "fine":
            return "fine"
        case _:
            raise ValueError(f"no use for {job.payload}")


@suite.case(SERVICE, "a handler that raises fails its job, and the service goes on")
async def _(env: Env) -> None:
    manager = await open_manager(env, pace())
    bad = [
        await submitted(manager, payload=payload, max_retries=0)
        for payload in ("one", "exit", "cancelled", "unstorable", "two")
    ]
    retried = await submitted(manager, payload="three", max_retries=1)
    async with serving(manager, _raises):
        for job in bad:
            await until_status(manager, job.id, S.FAILED)
        scheduled = await until_status(manager, retried.id, S.SCHEDULED)
        assert (scheduled.exception, scheduled.retry_count) == ("no use for three", 1)
        fine = await submitted(manager, payload="fine")
        await until_status(manager, fine.id, S.COMPLETED)
    for job, told in zip(bad, ("no use for one", "exit", "cancelled", "JSON"), strict=False):
        assert told in str((await read(manager, job.id)).exception)


@suite.case(SERVICE, "every stale_job_claim_check_interval it recovers what lost workers held")
async def _(env: Env) -> None:
    often = pace(stale_job_claim_check_interval=timedelta(milliseconds=10))
    manager = await open_manager(env, often)
    lost = await in_status(manager, S.IN_PROGRESS)
    async with serving(JobManager(manager.store, often), answering("recovered")):
        await asyncio.sleep(0.05)
        assert (await read(manager, lost.id)).status is S.IN_PROGRESS  # the claim holds
        env.clock.advance(300)
        job = await until_status(manager, lost.id, S.COMPLETED)
        assert job.result == "recovered"
    lost = await in_status(manager, S.IN_PROGRESS)
    async with serving(JobManager(manager.store, pace()), answering("recovered")):
        await asyncio.sleep(0.05)  # it looks once when it starts
        env.clock.advance(300)
        await asyncio.sleep(0.05)
        assert (await read(manager, lost.id)).status is S.IN_PROGRESS  # the day is not over


@suite.case(SERVICE, "stop lets what runs finish, and then nothing of the service is left")
async def _(env: Env) -> None:
    manager = await open_manager(env, pace())
    gate = Gate()
    service = BackgroundService(manager, gate)
    service.start()
    service.start()  # once is enough
    job = await submitted(manager)
    await until(lambda: gate.inside == 1)
    assert left_over()
    stopping = asyncio.ensure_future(service.stop())
    await asyncio.sleep(0.02)
    assert not stopping.done()
    gate.opened.set()
    await stopping
    await service.stop()
    assert (await read(manager, job.id)).result == f"{job.id} done"
    later = await submitted(manager)
    await asyncio.sleep(0.05)
    assert (await read(manager, later.id)).status is S.QUEUED
    assert not left_over()
    async with service:  # and it can be started again
        await until_status(manager, later.id, S.COMPLETED)


@suite.case(
    SERVICE, "stop cancels what does not finish in time: it is back in the pool, at no cost"
)
async def _(env: Env) -> None:
    manager = await open_manager(env, pace())
    gate = Gate()
    service = BackgroundService(manager, gate)
    service.start()
    job = await submitted(manager, max_retries=0)
    await until(lambda: gate.inside == 1)
    await service.stop(seconds=0.01)
    assert gate.cancelled == 1
    assert not left_over()
    found = await read(manager, job.id)
    assert (found.status, found.retry_count, found.worker_id) == (S.QUEUED, 0, None)
    assert (await claimed(manager)).id == job.id


class Flaky(JobManager):
    """Its first looks fail, each in another way."""

    troubles = 4

    async def claim_jobs_for_processing(
        self, worker_id: Id, max_claim_count: int | None = None
    ) -> MethodResult[list[Job]]:
        self.troubles -= 1
        if self.troubles > 2:
            raise OSError("the network is out of order")
        if self.troubles > 0:
            return MethodResult.failure(AsyncEndpointError("STORE_UNAVAILABLE", "not reachable"))
        return await super().claim_jobs_for_processing(worker_id, max_claim_count)


@suite.case(SERVICE, "an error of the store does not end it: the next look does better")
async def _(env: Env) -> None:
    manager = Flaky(await open_store(env), pace())
    job = await submitted(manager)
    with quiet():
        async with serving(manager, answering("done")):
            await until_status(manager, job.id, S.COMPLETED)
    assert manager.troubles <= 0


class AtOnce:
    """Every scheduled job is due."""

    async def get_due_jobs(self, job_store: IJobStore, max_count: int) -> MethodResult[list[Job]]:
        return await job_store.get_jobs_by_status(S.SCHEDULED, max_count)


@suite.case(SERVICE, "it schedules by the manager's strategy, and takes what is due in any case")
async def _(env: Env) -> None:
    store = await open_store(env)
    plain, strategic = (
        JobManager(store, pace()),
        JobManager(store, pace(), scheduling_strategy=AtOnce()),
    )
    assert not plain.needs_scheduling
    assert strategic.needs_scheduling
    later = env.clock.now() + timedelta(hours=1)
    first = await submitted(plain, retry_delay_until=later)
    async with serving(plain, answering("in time")):
        await asyncio.sleep(0.03)
        assert (await read(plain, first.id)).status is S.SCHEDULED
        env.clock.set(later)
        await until_status(plain, first.id, S.COMPLETED)
    second = await submitted(plain, retry_delay_until=later + timedelta(hours=1))
    async with serving(strategic, answering("ahead of time")):
        await until_status(strategic, second.id, S.COMPLETED)


@suite.case(SERVICE, "a job whose claim went stale in its own hands is not begun twice")
async def _(env: Env) -> None:
    often = pace(stale_job_claim_check_interval=timedelta(milliseconds=10))
    manager = await open_manager(env, often)
    gate = Gate()
    job = await submitted(manager)
    async with serving(manager, gate, worker_id="worker-a"):
        await until(lambda: gate.inside == 1)
        env.clock.advance(300)
        async with asyncio.timeout(SOON_SECONDS):
            while (await read(manager, job.id)).last_updated_at != env.clock.now():  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.002)
        await until_status(manager, job.id, S.IN_PROGRESS)
        assert gate.most == 1
        gate.opened.set()
        await until_status(manager, job.id, S.COMPLETED)
    assert gate.most == 1


@suite.case(SERVICE, "what is no handler and no worker is refused")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    nothing: Any = None
    with raises(InvalidInput):
        BackgroundService(manager, nothing)
    with raises(InvalidInput):
        BackgroundService(manager, answering(None), worker_id="")
    done(await manager.get_job_statistics())
