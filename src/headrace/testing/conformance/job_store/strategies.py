"""Custom Retry Strategies and Custom Scheduling Strategies."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.contracts.job_store import (
    AsyncEndpointError,
    ExponentialBackoffRetryStrategy,
    IJobStore,
    Job,
    JobManager,
    JobStatus,
    MethodResult,
    RetryStrategy,
    SchedulingStrategy,
    TimedSchedulingStrategy,
)
from headrace.duration import DELAY_SECONDS_MAX
from headrace.testing.conformance.job_store.factories import (
    claimed,
    code,
    data,
    done,
    in_status,
    open_manager,
    open_store,
    read,
    submitted,
)
from headrace.testing.conformance.job_store.suite import suite
from headrace.testing.conformance.kit import Env

RETRY = "Custom Retry Strategies"
SCHEDULING = "Custom Scheduling Strategies"
RESULTS = "Error Handling"


class Recorded:
    """A strategy that says what it is told to and remembers what it was asked."""

    def __init__(self, *, retries: int = 99, seconds: float = 1.5) -> None:
        self.retries = retries
        self.delay: Any = timedelta(seconds=seconds)
        self.asked: list[tuple[str, int, object]] = []

    def calculate_delay(self, retry_count: int, job: Job) -> timedelta:
        self.asked.append(("delay", retry_count, job.id))
        delay: timedelta = self.delay
        return delay

    def should_retry(self, retry_count: int, job: Job, exception: BaseException | None) -> bool:
        self.asked.append((f"retry after {exception}", retry_count, job.id))
        return retry_count < self.retries


@suite.case(RETRY, "ExponentialBackoffRetryStrategy waits 2, 4, 8 seconds for 0, 1, 2 retries")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    strategy = ExponentialBackoffRetryStrategy()
    assert isinstance(strategy, RetryStrategy)
    job = await submitted(manager)
    delays = [strategy.calculate_delay(n, job) for n in range(4)]
    assert delays == [timedelta(seconds=seconds) for seconds in (2, 4, 8, 16)]


@suite.case(RETRY, "ExponentialBackoffRetryStrategy waits ten years at most, after any number")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    job = await submitted(manager)
    ten_years = timedelta(seconds=DELAY_SECONDS_MAX)
    strategy = ExponentialBackoffRetryStrategy()
    assert [strategy.calculate_delay(n, job) for n in (28, 50, 5000)] == [ten_years] * 3
    assert ExponentialBackoffRetryStrategy(0.0).calculate_delay(5000, job) == timedelta(0)


@suite.case(RETRY, "ExponentialBackoffRetryStrategy retries while retry_count < max_retries")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    strategy = ExponentialBackoffRetryStrategy()
    job = await submitted(manager, max_retries=2)
    error = ValueError("bad")
    assert [strategy.should_retry(n, job, error) for n in range(4)] == [True, True, False, False]
    assert strategy.should_retry(2, Job(), None) is True
    assert strategy.should_retry(3, Job(), None) is False


@suite.case(RETRY, "with the built-in strategy a manager retries as it does without one")
async def _(env: Env) -> None:
    manager = await open_manager(env, None, ExponentialBackoffRetryStrategy())
    job = await submitted(manager, max_retries=2)
    for seconds in (4, 8):
        await claimed(manager)
        done(await manager.process_job_failure(job.id, "error"))
        found = await read(manager, job.id)
        assert found.retry_delay_until == env.clock.now() + timedelta(seconds=seconds)
        env.clock.advance(seconds)
    await claimed(manager)
    done(await manager.process_job_failure(job.id, "error"))
    found = await read(manager, job.id)
    assert (found.status, found.retry_count) == (JobStatus.FAILED, 2)


@suite.case(
    RETRY, "a custom strategy is asked with the retries before, and for the delay of the next"
)
async def _(env: Env) -> None:
    strategy = Recorded(seconds=1.000001)
    manager = await open_manager(env, None, strategy)
    job = await submitted(manager)
    await claimed(manager)
    done(await manager.process_job_failure(job.id, "text"))
    found = await read(manager, job.id)
    assert found.retry_delay_until == env.clock.now() + timedelta(seconds=1.000001)
    env.clock.advance(2)
    await claimed(manager)
    done(await manager.process_job_failure(job.id, ValueError("raised")))
    assert strategy.asked == [
        ("retry after text", 0, job.id),
        ("delay", 1, job.id),
        ("retry after raised", 1, job.id),
        ("delay", 2, job.id),
    ]


@suite.case(RETRY, "a strategy can end a job sooner than max_retries, never later")
async def _(env: Env) -> None:
    sooner = await open_manager(env, None, Recorded(retries=1, seconds=0))
    job = await submitted(sooner, max_retries=5)
    for expected in (JobStatus.SCHEDULED, JobStatus.FAILED):
        await claimed(sooner)
        done(await sooner.process_job_failure(job.id, "error"))
        assert (await read(sooner, job.id)).status is expected
    later = JobManager(sooner.store, None, Recorded(seconds=0))
    job = await submitted(later, max_retries=1)
    for expected in (JobStatus.SCHEDULED, JobStatus.FAILED):
        await claimed(later)
        done(await later.process_job_failure(job.id, "error"))
        assert (await read(later, job.id)).status is expected


@suite.case(RETRY, "a delay that makes no sense is refused, and the job goes on")
async def _(env: Env) -> None:
    strategy = Recorded()
    manager = await open_manager(env, None, strategy)
    job = await in_status(manager, JobStatus.IN_PROGRESS)
    for delay in (timedelta(seconds=-1), float("nan"), None):
        strategy.delay = delay
        assert code(await manager.process_job_failure(job.id, "error")) == "INVALID_LIMIT"
        assert await read(manager, job.id) == job
    strategy.delay = 7
    done(await manager.process_job_failure(job.id, "error"))
    found = await read(manager, job.id)
    assert found.retry_delay_until == env.clock.now() + timedelta(seconds=7)


class Fixed:
    """A scheduling strategy that answers what it was given."""

    def __init__(self, answer: MethodResult[list[Job]]) -> None:
        self.answer = answer
        self.asked: list[tuple[IJobStore, int]] = []

    async def get_due_jobs(self, job_store: IJobStore, max_count: int) -> MethodResult[list[Job]]:
        self.asked.append((job_store, max_count))
        return self.answer


@suite.case(SCHEDULING, "TimedSchedulingStrategy finds what GetDueScheduledJobs finds")
async def _(env: Env) -> None:
    manager = await open_manager(env)
    strategy = TimedSchedulingStrategy()
    assert isinstance(strategy, SchedulingStrategy)
    for _ in range(3):
        await submitted(manager, retry_delay_until=env.clock.now() + timedelta(seconds=1))
    assert data(await strategy.get_due_jobs(manager.store, 10)) == []
    env.clock.advance(1)
    assert len(data(await strategy.get_due_jobs(manager.store, 10))) == 3
    assert len(data(await strategy.get_due_jobs(manager.store, 2))) == 2
    assert code(await strategy.get_due_jobs(manager.store, -1)) == "INVALID_LIMIT"


@suite.case(
    SCHEDULING, "ProcessScheduledJobs asks the strategy it was given and passes its failure on"
)
async def _(env: Env) -> None:
    store = await open_store(env)
    strategy = Fixed(MethodResult.success([Job(), Job()]))
    manager = JobManager(store, scheduling_strategy=strategy)
    assert (await manager.process_scheduled_jobs()).data == 0  # no such jobs
    assert strategy.asked == [(store, 10)]
    strategy.answer = MethodResult.failure(AsyncEndpointError("BROKEN", "the strategy is broken"))
    assert code(await manager.process_scheduled_jobs()) == "BROKEN"


@suite.case(RESULTS, "a result is a value: success has data and no error, failure the reverse")
async def _(env: Env) -> None:
    store = await open_store(env)
    good = await store.create_job(Job())
    assert (good.is_success, good.error) == (True, None)
    bad = await store.get_job_by_id("unknown")
    assert (bad.is_success, bad.data) == (False, None)
    assert bad == MethodResult.failure(
        AsyncEndpointError("JOB_NOT_FOUND", "job unknown was not found; nothing was changed")
    )


class Broken(Recorded):
    """A strategy with a defect in one of its two methods."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.method = method

    def calculate_delay(self, retry_count: int, job: Job) -> timedelta:
        if self.method == "calculate_delay":
            raise ZeroDivisionError("the delay is out of order")
        return super().calculate_delay(retry_count, job)

    def should_retry(self, retry_count: int, job: Job, exception: BaseException | None) -> bool:
        if self.method == "should_retry":
            raise KeyError("the decision is out of order")
        return super().should_retry(retry_count, job, exception)


@suite.case(RETRY, "a strategy that raises is a failed result, and the job is as it was")
async def _(env: Env) -> None:
    for method in ("should_retry", "calculate_delay"):
        manager = await open_manager(env, retry_strategy=Broken(method))
        await submitted(manager)
        job = await claimed(manager)
        failed = await manager.process_job_failure(job.id, "no")
        assert code(failed) == "RETRY_STRATEGY_FAILED"
        assert failed.error is not None
        assert "out of order" in failed.error.message
        assert await read(manager, job.id) == job
        done(await manager.process_job_success(job.id))
