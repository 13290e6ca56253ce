"""The times of events: along a job they never run back, whatever the clocks of its writers say."""

from __future__ import annotations

from headrace import history
from headrace.clock import ManualClock
from headrace.manager import JobManager
from headrace.model import Job
from headrace.policy import Policy
from headrace.retry import NoBackoff
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.manager.suite import submit, suite, take


def _register(behind: float) -> None:
    @suite.case(
        "chronology",
        f"clocks {behind:g} s apart: along a job times never run back",
    )
    async def apart(env: Env) -> None:
        policy = Policy(backoff=NoBackoff(), lease_seconds=None)
        first = await env.manager(policy)
        clock = ManualClock(env.clock.now())
        clock.advance(-behind)
        second = JobManager(first.store, clock=clock, policies=first.policies)
        await submit(first, "parent")
        await submit(first, "child", after=["parent"])
        clock.advance(behind)  # it sees the job as due, and then errs again
        _, token = await take(second, "parent")
        clock.advance(-behind)
        await second.fail("parent", token, "no")
        _, token = await take(first, "parent")
        env.clock.advance(1)
        await first.release("parent", token)
        clock.advance(behind + 1)
        _, token = await take(second, "parent")
        clock.advance(-behind - 1)
        await second.complete("parent", token)
        await second.cancel(["child"])
        for job_id, kinds in (("parent", 7), ("child", 3)):
            await _is_in_order(first, await first.get(job_id), kinds)


for _behind in (0.25, 3.0, 600.0):
    _register(_behind)


async def _is_in_order(manager: JobManager, job: Job, kinds: int) -> None:
    """For every reader: of the job, of all, and of a stream. The row is what the events say."""
    of_job = await manager.events(job_id=job.id)
    of_all = [event for event in await manager.events() if event.job_id == job.id]
    streamed = [
        event async for event in manager.follow(idle_seconds=0.05) if event.job_id == job.id
    ]
    assert list(of_job) == of_all == streamed
    assert len(of_job) == kinds
    at = [event.at for event in of_job]
    assert at == sorted(at)
    row = history.fold(of_job)
    assert row["updated_at"] == job.updated_at == at[-1]
    assert {name: getattr(job, name) for name in row} == row
