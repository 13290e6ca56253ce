"""How large payloads and results may be: 1 MB, or what was configured up to 16 MB, to the byte."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from headrace.codec import PAYLOAD_BYTES_DEFAULT, PAYLOAD_BYTES_MAX
from headrace.contracts.backend_api import (
    Backend,
    InvalidArgumentError,
    Job,
    JobNotFoundError,
    Queue,
)
from headrace.testing.conformance.backend_api.suite import S, put, suite
from headrace.testing.conformance.kit import CaseFunction, Env, raises


async def _opened(env: Env, **limits: int) -> Queue:
    return env.closing(await Queue.open(env.url, env.clock, **limits))


async def _complete(queue: Queue, job_id: str, result: Any) -> None:
    await queue.complete_job(job_id, result)


async def _complete_in_batch(queue: Queue, job_id: str, result: Any) -> None:
    for error in (await queue.complete_jobs({job_id: result})).errors.values():
        raise error


async def _update(queue: Queue, job_id: str, result: Any) -> None:
    await queue.update_job_status(job_id, S.COMPLETED, result)


_WAYS: Mapping[str, Callable[[Queue, str, Any], Awaitable[None]]] = {
    "CompleteJob": _complete,
    "complete_jobs": _complete_in_batch,
    "UpdateJobStatus": _update,
}


def _exact(way: Callable[[Queue, str, Any], Awaitable[None]]) -> CaseFunction:
    async def case(env: Env) -> None:
        for limit in (10, 2_000_000):
            queue = await _opened(env, result_bytes_max=limit)
            for kind, fits, larger in (
                ("bytes", b"\xff" * limit, b"\xff" * (limit + 1)),
                ("text", "x" * (limit - 2), "x" * (limit - 1)),
            ):
                job_id = f"{kind}-{limit}"
                before = await put(queue, job_id, S.RUNNING)
                with raises(InvalidArgumentError) as caught:
                    await way(queue, job_id, larger)
                assert str(limit) in str(caught.error)
                assert await queue.get_job(job_id) == before
                await way(queue, job_id, fits)
                assert (await queue.get_job(job_id)).result == fits

    return case


for _name, _way in _WAYS.items():
    suite.case(
        "CompleteJob: Postconditions",
        f"a result may have result_bytes_max bytes by {_name}, no more",
    )(_exact(_way))


@suite.case(
    "CompleteJob: Postconditions", "results and payloads of 16 MB are kept where configured"
)
async def sixteen_megabytes(env: Env) -> None:
    most = PAYLOAD_BYTES_MAX
    queue = await _opened(env, payload_bytes_max=most, result_bytes_max=most)
    payload, result = b"\xfe" * most, b"\xff" * most
    await queue.enqueue_job(Job(id="a", payload=payload))
    await queue.dequeue_jobs("w")
    await queue.complete_job("a", result)
    job = await queue.get_job("a")
    assert job.payload == payload
    assert job.result == result
    with raises(InvalidArgumentError):
        await queue.enqueue_job(Job(id="b", payload=payload + b"!"))
    with raises(JobNotFoundError):
        await queue.get_job("b")


@suite.case("CompleteJob: Postconditions", "without a configured size a result may have 1 MB")
async def one_megabyte(env: Env) -> None:
    queue: Queue = Queue(await env.open(Backend))
    before = await put(queue, "a", S.RUNNING)
    with raises(InvalidArgumentError):
        await queue.complete_job("a", b"\xff" * (PAYLOAD_BYTES_DEFAULT + 1))
    assert await queue.get_job("a") == before
    await queue.complete_job("a", b"\xff" * PAYLOAD_BYTES_DEFAULT)


@suite.case("CompleteJob: Postconditions", "a size above 16 MB, or no size, is refused on opening")
async def no_size(env: Env) -> None:
    wrong: Any
    for wrong in (PAYLOAD_BYTES_MAX + 1, 0, -1, 1.5, "1"):
        with raises(InvalidArgumentError):
            await _opened(env, result_bytes_max=wrong)
        with raises(InvalidArgumentError):
            await _opened(env, payload_bytes_max=wrong)


@suite.case(
    "EnqueueJob: Postconditions", "a payload may say anything, also what is kept beside one"
)
async def payload_like_kept(env: Env) -> None:
    queue = await _opened(env)
    for number, payload in enumerate(
        ({"kept_for": "backend_api", "payload": 1}, {"a": {"kept_for": 2}}, {"payload": b"x".hex()})
    ):
        await queue.enqueue_job(Job(id=f"j{number}", payload=payload))
        assert (await queue.get_job(f"j{number}")).payload == payload
