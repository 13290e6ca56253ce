"""Job Lifecycle: UpdateJobStatus, from every status to every status."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.contracts.backend_api import (
    Backend,
    InvalidArgumentError,
    InvalidStateError,
    JobNotFoundError,
    JobStatus,
)
from headrace.testing.conformance.backend_api.suite import (
    FINAL,
    STATUSES,
    S,
    drain,
    put,
    suite,
    worker_of,
)
from headrace.testing.conformance.kit import CaseFunction, Env, raises

ALLOWED = {
    (S.INITIAL_PENDING, S.UNSCHEDULED),
    (S.RUNNING, S.CANCELLING),
    (S.RUNNING, S.COMPLETED),
    (S.RUNNING, S.FAILED_RETRY),
    (S.RUNNING, S.STOPPED),
    (S.RUNNING, S.UNKNOWN_RETRY),
    (S.RUNNING, S.UNKNOWN_STOPPED),
    (S.CANCELLING, S.STOPPED),
    (S.CANCELLING, S.UNKNOWN_STOPPED),
    (S.FAILED_RETRY, S.STOPPED),
    (S.FAILED_RETRY, S.UNKNOWN_STOPPED),
    (S.UNKNOWN_RETRY, S.RUNNING),
    (S.UNKNOWN_RETRY, S.FAILED_RETRY),
    (S.UNKNOWN_RETRY, S.STOPPED),
    (S.UNKNOWN_RETRY, S.UNKNOWN_STOPPED),
    (S.UNKNOWN_RETRY, S.COMPLETED),
    (S.UNKNOWN_STOPPED, S.STOPPED),
}


def _allowed(source: JobStatus, target: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", source)
        env.clock.advance(30)
        freed = await backend.update_job_status("a", target, b"news", "said")
        now = env.clock.now()
        changes: dict[str, Any] = {"status": target, "result": b"news", "error_message": "said"}
        if target in FINAL:
            changes["finalized_at"] = before.finalized_at or now
        if target is S.RUNNING:
            changes["assigned_at"] = now  # assigned anew, to the same worker
        assert await backend.get_job("a") == msgspec.structs.replace(before, **changes)
        held = source is S.RUNNING and target in FINAL
        assert freed == ({worker_of("a"): 1} if held else {})

    return case


def _refused(source: JobStatus, target: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", source)
        env.clock.advance(30)
        with raises(InvalidStateError):
            await backend.update_job_status("a", target, b"news", "said")
        assert await backend.get_job("a") == before

    return case


def _same(status: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", status)
        env.clock.advance(30)
        assert await backend.update_job_status("a", status, b"news", "said") == {}
        assert await backend.get_job("a") == before

    return case


def _nothing_given(source: JobStatus, target: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        before = await put(backend, "a", source)
        await backend.update_job_status("a", target, None, "")
        after = await backend.get_job("a")
        assert (after.status, after.result) == (target, before.result)
        assert after.error_message == before.error_message
        assert after.retry_count == before.retry_count
        assert after.last_retry_at == before.last_retry_at

    return case


for _source in STATUSES:
    for _target in STATUSES:
        if _source is _target:
            suite.case("UpdateJobStatus: Postconditions", f"{_source} again changes nothing")(
                _same(_source)
            )
        elif (_source, _target) in ALLOWED:
            suite.case(
                "UpdateJobStatus: Postconditions", f"{_source} → {_target} with result and message"
            )(_allowed(_source, _target))
            suite.case(
                "UpdateJobStatus: Backend Expectations",
                f"{_source} → {_target} keeps result, message and retry count that are not given",
            )(_nothing_given(_source, _target))
        else:
            suite.case("UpdateJobStatus: Error Conditions", f"{_source} → {_target} is an error")(
                _refused(_source, _target)
            )


@suite.case("UpdateJobStatus: Preconditions", "an empty jobID is refused")
async def empty_id(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    with raises(InvalidArgumentError):
        await backend.update_job_status("", S.COMPLETED, None, "")


@suite.case("UpdateJobStatus: Preconditions", "a status that does not exist is refused")
async def no_such_status(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    before = await put(backend, "a", S.RUNNING)
    nonsense: Any = "DONE"
    with raises(InvalidArgumentError):
        await backend.update_job_status("a", nonsense, None, "")
    assert await backend.get_job("a") == before


@suite.case("UpdateJobStatus: Error Conditions", "a job that does not exist is an error")
async def unknown_job(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    for status in STATUSES:
        with raises(JobNotFoundError):
            await backend.update_job_status("a", status, None, "")


@suite.case("UpdateJobStatus: Postconditions", "a result of no bytes is a result, nil is none")
async def empty_result(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.RUNNING)
    await backend.update_job_status("a", S.UNKNOWN_RETRY, b"", "")
    assert (await backend.get_job("a")).result == b""
    await backend.update_job_status("a", S.COMPLETED, None, "")
    assert (await backend.get_job("a")).result == b""


@suite.case(
    "UpdateJobStatus: Observable Effects", "an update to an eligible status makes the job eligible"
)
async def eligible_by_update(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "failed", S.RUNNING)
    await put(backend, "lost", S.RUNNING)
    await backend.update_job_status("failed", S.FAILED_RETRY, None, "again")
    await backend.update_job_status("lost", S.UNKNOWN_RETRY, None, "")
    assert await drain(backend) == {"failed", "lost"}


@suite.case(
    "UpdateJobStatus: Observable Effects", "a job updated to RUNNING is held by its worker again"
)
async def running_again(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await put(backend, "a", S.UNKNOWN_RETRY)
    await backend.update_job_status("a", S.RUNNING, None, "")
    assert await drain(backend) == set()
    assert await backend.complete_job("a", b"") == {worker_of("a"): 1}
