"""Integration Patterns: the batches of the Queue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from headrace.contracts.backend_api import (
    InvalidArgumentError,
    InvalidStateError,
    JobNotFoundError,
    JobStatus,
    Queue,
)
from headrace.testing.conformance.backend_api.streaming import (
    COMPLETION,
    fill,
)
from headrace.testing.conformance.backend_api.suite import S, put, suite
from headrace.testing.conformance.kit import CaseFunction, Env, raises


async def _cancelling(queue: Queue) -> None:
    for job_id in ("a", "b"):
        await put(queue, job_id, S.CANCELLING)


async def _running(queue: Queue) -> None:
    for job_id in ("a", "b"):
        await put(queue, job_id, S.RUNNING)


BATCHES: dict[str, tuple[Callable[[Queue], Awaitable[Any]], Any, JobStatus, str]] = {
    "complete_jobs": (_running, b"out", S.COMPLETED, ""),
    "fail_jobs": (_running, "said", S.FAILED_RETRY, "said"),
    "stop_jobs": (_running, "said", S.STOPPED, "said"),
    "stop_jobs_with_retry": (_cancelling, "said", S.STOPPED, "said"),
    "mark_jobs_unknown_stopped": (_running, "said", S.UNKNOWN_STOPPED, "said"),
    "acknowledge_cancellations": (_cancelling, True, S.STOPPED, "cancelled"),
}


def _batch(name: str) -> CaseFunction:
    stage, value, target, message = BATCHES[name]

    async def case(env: Env) -> None:
        queue: Queue = await env.open(Queue)
        await stage(queue)
        done = await put(queue, "done", S.COMPLETED)
        answer = await getattr(queue, name)({"a": value, "done": value, "b": value, "ghost": value})
        assert answer.freed == {"worker-of-a": 1, "worker-of-b": 1}
        assert {job_id: type(error) for job_id, error in answer.errors.items()} == {
            "done": InvalidStateError,
            "ghost": JobNotFoundError,
        }
        for job in await queue.get_jobs(["a", "b"]):
            assert (job.status, job.error_message) == (target, message)
        assert await queue.get_job("done") == done
        empty = await getattr(queue, name)({})
        assert (empty.freed, empty.errors) == ({}, {})

    return case


for _name in BATCHES:
    suite.case(COMPLETION, f"{_name} changes each job alone and sums the capacity freed")(
        _batch(_name)
    )


@suite.case(COMPLETION, "a bad value refuses its own job of a batch, not the others")
async def bad_value(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await _running(queue)
    answer = await queue.fail_jobs({"a": "", "b": "said"})
    assert {job_id: type(error) for job_id, error in answer.errors.items()} == {
        "a": InvalidArgumentError
    }
    assert (await queue.get_job("a")).status is S.RUNNING
    assert (await queue.get_job("b")).status is S.FAILED_RETRY


@suite.case(COMPLETION, "get_jobs answers in order, and an unknown ID is an error")
async def get_many(env: Env) -> None:
    queue: Queue = await env.open(Queue)
    await fill(queue, 3)
    assert [job.id for job in await queue.get_jobs(["j2", "j0"])] == ["j2", "j0"]
    assert await queue.get_jobs([]) == []
    with raises(JobNotFoundError):
        await queue.get_jobs(["j2", "ghost"])
