"""Outcomes that cannot be recorded as they are: each is its own job's affair, never its neighbours'."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NoReturn

import msgspec
from msgspec.structs import replace

from headrace import errors, lifecycle
from headrace.manager import Completed, Failed, JobManager
from headrace.model import Category, Failure, Job, State
from headrace.policy import Policy
from headrace.retry import Constant
from headrace.spec import JobSpec, draft
from headrace.stores.base import Insertion
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import submit, suite, take

QUEUES_OWN = Policy(backoff=Constant(7.0, jitter=False))

UNKNOWN_BACKOFFS = (
    b'{"kind":"fibonacci","initial":1.0}',
    b'{"kind":"exponential","initial":"soon"}',
    b'{"kind":"constant","initial":-5.0}',
    b'{"kind":"constant","initial":1e300}',
    b'{"kind":"linear","initial":null}',
    b'{"initial":1.0}',
    b'"exponential"',
    b"5",
    b"true",
    b"[1,2,3]",
    b"null",
    b"{",
)
"""By a newer version, by another program, by an accident."""


@suite.case("settle", "a backoff that nobody knows gives way to the queue's, and harms no other")
async def unknown_backoffs(env: Env) -> None:
    manager = await env.manager(QUEUES_OWN)
    odd = [f"odd{number}" for number in range(len(UNKNOWN_BACKOFFS))]
    for job_id, backoff in zip(odd, UNKNOWN_BACKOFFS, strict=True):
        await _insert(manager, job_id, backoff)
    await submit(manager, "good")
    claimed = {job.id: job for job in await manager.claim("w", limit=100)}
    failure = Failure("no", Category.TEMPORARY)
    settled = await manager.settle(
        [
            *(Failed(job_id=one, token=claimed[one].token, failure=failure) for one in odd),
            Completed(job_id="good", token=claimed["good"].token, result=1),
        ]
    )
    *failed, good = settled.outcomes
    assert isinstance(good, Job)
    assert good.state is State.COMPLETED
    for job in failed:
        assert isinstance(job, Job), job
        assert job.state is State.RETRYING
        assert job.run_at == env.clock.now() + timedelta(seconds=7)


class Biting(dict[str, Any]):
    """What a handler may return: a map that bites whoever looks at it."""

    def _bite(self, *_: object) -> NoReturn:
        raise RuntimeError("it bites")

    items = keys = values = __iter__ = __getitem__ = _bite


@suite.case("settle", "an outcome that cannot be read is refused alone; the others are recorded")
async def unreadable(env: Env) -> None:
    manager = await env.manager()
    for job_id in ("a", "bad", "worse", "b"):
        await submit(manager, job_id)
    claimed = {job.id: job for job in await manager.claim("w", limit=10)}
    bad, worse = Biting(x=[object()]), Failure(5, Category.TEMPORARY)  # type: ignore[arg-type]
    settled = await manager.settle(
        [
            Completed(job_id="a", token=claimed["a"].token, result="fine"),
            Completed(job_id="bad", token=claimed["bad"].token, result=bad),
            Failed(job_id="worse", token=claimed["worse"].token, failure=worse),
            Completed(job_id="b", token=claimed["b"].token, result="fine"),
        ]
    )
    states = [one.state if isinstance(one, Job) else type(one) for one in settled.outcomes]
    assert states[0] is states[3] is State.COMPLETED
    assert all(isinstance(one, errors.InvalidInput) for one in settled.outcomes[1:3]), states
    for job_id in ("bad", "worse"):
        assert await manager.get(job_id) == replace(claimed[job_id], seq=claimed[job_id].seq)
        await manager.release(job_id, claimed[job_id].token)


@suite.case("complete", "what says that it is JSON already must be JSON")
async def raw(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")
    _, token = await take(manager, "j")
    with raises(errors.InvalidPayload):
        await manager.complete("j", token, msgspec.Raw(b"{no json"))
    assert (await manager.complete("j", token, msgspec.Raw(b'{"n": 1}'))).job.result == {"n": 1}


async def _insert(manager: JobManager, job_id: str, backoff_json: bytes) -> None:
    now = manager.clock.now()
    drafted = draft(JobSpec(type="t", id=job_id), QUEUES_OWN, now, tenant="default")
    job, event = lifecycle.submit(replace(drafted, backoff_json=backoff_json))
    await manager.store.insert(Insertion(jobs=[job], events=[event], now=now))


@suite.case(
    "settle", "a job that its holder knows completes only while the lease holds that it knows"
)
async def known_jobs(env: Env) -> None:
    manager = await env.manager(Policy(lease_seconds=30.0, timeout_seconds=40.0))
    await submit(manager, "good")
    await submit(manager, "other")
    await submit(manager, "lapsed", lease_seconds=10.0)
    await submit(manager, "late", timeout_seconds=15.0)
    await submit(manager, "outlived", lifetime_seconds=18.0)
    claimed = await manager.claim("w", limit=10)
    env.clock.advance(20.0)
    settled = await manager.settle(
        [
            Completed(
                job_id=job.id,
                token="1.other" if job.id == "other" else job.token,
                known=job,
                result={"n": 1},
            )
            for job in claimed
        ]
    )
    told = {
        job.id: outcome.state if isinstance(outcome, Job) else type(outcome)
        for job, outcome in zip(claimed, settled.outcomes, strict=True)
    }
    assert told == {
        "good": State.COMPLETED,
        "other": errors.StaleToken,
        "lapsed": errors.LeaseExpired,
        "late": errors.LeaseExpired,
        "outlived": errors.LeaseExpired,
    }
    read = await manager.get("good")
    assert (read.state, read.result, read.finalized_at) == (
        State.COMPLETED,
        {"n": 1},
        env.clock.now(),
    )
    assert read == settled.outcomes[0]
