"""9. Job Payload: format, size, character set, schema, immutability."""

from __future__ import annotations

from typing import Any

from headrace.contracts.job_model import (
    InvalidBatch,
    InvalidLimit,
    InvalidPayload,
    JobRequest,
    JobState,
    PayloadTooLarge,
)
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    state,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env, raises

PART = "9. Payload Constraints"
MB = 1 << 20


@suite.case(f"{PART}: Format", "anything JSON can say, or bytes; what is neither is refused")
async def format_(env: Env) -> None:
    queue = await open_queue(env)
    payloads: list[Any] = [
        None,
        True,
        0,
        -1.5,
        "text",
        [],
        {"a": [1, {"b": None}]},
        b"",
        bytes(range(256)),
    ]
    for payload in payloads:
        job_id = await queue.submit("t", payload)
        stored = (await queue.get(job_id)).payload
        assert stored == payload
        assert type(stored) is type(payload)
        assert (await claimed(queue)).payload == payload
    for bad in (object(), {"f": lambda: 1}, float("nan"), [float("inf")]):
        with raises(InvalidPayload):
            await queue.submit("t", bad)
    assert await queue.claim("w") is None


@suite.case(f"{PART}: Max size", "1 MB by default: exactly that passes, one byte more does not")
async def max_size(env: Env) -> None:
    queue = await open_queue(env)
    fits = "x" * (MB - 2)  # the quotes make it 1 MB
    assert (await queue.get(await queue.submit("t", fits))).payload == fits
    with raises(PayloadTooLarge):
        await queue.submit("u", fits + "x")
    assert await queue.claim("w", types=["u"]) is None


@suite.case(f"{PART}: Max size", "configurable to 16 MB and no further")
async def max_size_configured(env: Env) -> None:
    queue = await open_queue(env, payload_bytes_max=16 * MB)
    fits = "x" * (16 * MB - 2)
    job_id = await queue.submit("t", fits)
    assert len((await queue.get(job_id)).payload) == len(fits)
    with raises(PayloadTooLarge):
        await queue.submit("t", fits + "x")
    for bad in (0, -1, 16 * MB + 1):
        with raises(InvalidLimit):
            await open_queue(env, payload_bytes_max=bad)
    small = await open_queue(env, payload_bytes_max=10)
    with raises(PayloadTooLarge):
        await small.submit("t", "x" * 9)


@suite.case(f"{PART}: Max size", "one payload too large refuses its whole batch")
async def max_size_batch(env: Env) -> None:
    queue = await open_queue(env, payload_bytes_max=10)
    with raises(InvalidBatch):
        await queue.submit_batch([JobRequest("t", 1), JobRequest("t", "x" * 20)])
    assert await queue.claim("w") is None


@suite.case(f"{PART}: Character set", "text is UTF-8: every character comes back as it went")
async def character_set(env: Env) -> None:
    queue = await open_queue(env)
    text = 'Grüße, мир, 世界, 🚀, \u0000 \n \\ " and combining e\u0301'
    assert (await queue.get(await queue.submit("t", {text: text}))).payload == {text: text}
    with raises(InvalidPayload):
        await queue.submit("t", "half a character: \ud800")


@suite.case(f"{PART}: Schema", "the system does not interpret a payload")
async def schema(env: Env) -> None:
    queue = await open_queue(env)
    payload = {"id": "mine", "state": "COMPLETED", "priority": 0, "run_at": "never", "delay": 9}
    job_id = await queue.submit("t", payload)
    job = await queue.get(job_id)
    assert (job.payload, job.state, job.priority.value) == (payload, JobState.SCHEDULED, 2)


@suite.case("9. Payload Immutability", "neither the submitter's nor the reader's copy changes it")
async def immutable(env: Env) -> None:
    queue = await open_queue(env)
    payload = {"items": [1, 2]}
    job_id = await queue.submit("t", payload)
    payload["items"].append(3)
    (await queue.get(job_id)).payload["items"].append(4)
    job = await claimed(queue)
    job.payload["items"].append(5)
    await queue.fail(job_id, token_of(job), "no")
    env.clock.advance(1)
    assert (await claimed(queue)).payload == {"items": [1, 2]}


@suite.case(
    "9. Payload Immutability", "to modify, a new job is submitted and the original cancelled"
)
async def modify(env: Env) -> None:
    queue = await open_queue(env)
    original = await queue.submit("t", {"v": 1})
    changed = await queue.submit("t", {"v": 2})
    await queue.cancel(original)
    assert await state(queue, original) is JobState.CANCELLED
    job = await claimed(queue)
    assert (job.id, job.payload) == (changed, {"v": 2})


@suite.case("9. Sensitive Data Handling", "an error about a payload does not repeat it")
async def not_in_errors(env: Env) -> None:
    queue = await open_queue(env, payload_bytes_max=20)
    with raises(PayloadTooLarge) as caught:
        await queue.submit("t", {"password": "hunter2-hunter2"})
    assert "hunter2" not in str(caught.error)
