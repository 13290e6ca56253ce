"""10. Job Metadata: each field the system keeps, and each the user sets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.contracts.job_model import (
    InvalidInput,
    Job,
    JobNotFound,
    JobRequest,
    JobState,
    JobTerminal,
    Priority,
)
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    run,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env, raises

SYSTEM = "10. System Metadata (Read-Only)"
USER = "10. User Metadata (Read-Write)"


@suite.case(SYSTEM, "what is read cannot be written to")
async def read_only(env: Env) -> None:
    queue = await open_queue(env)
    job = await queue.get(await queue.submit("t"))
    for field in Job.__struct_fields__:
        with raises(AttributeError):
            setattr(job, field, None)


@suite.case(f"{SYSTEM}: id, created_at, state", "set at submission, and created_at never again")
async def created_at(env: Env) -> None:
    queue = await open_queue(env)
    start = env.clock.now()
    job_id = await queue.submit("t")
    env.clock.advance(5)
    await run(queue, job_id, error="no")
    env.clock.advance(5)
    done = await run(queue, job_id)
    assert (done.id, done.created_at, done.state) == (job_id, start, JobState.COMPLETED)


@suite.case(
    f"{SYSTEM}: updated_at", "the last change of state; heartbeats and checkpoints are none"
)
async def updated_at(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t", delay=10)
    start = env.clock.now()
    assert (await queue.get(job_id)).updated_at == start
    env.clock.advance(15)
    assert (await queue.get(job_id)).updated_at == start + timedelta(seconds=10)
    job = await claimed(queue)
    assert job.updated_at == start + timedelta(seconds=15)
    env.clock.advance(5)
    await queue.heartbeat(job_id, token_of(job))
    await queue.checkpoint(job_id, token_of(job), 1)
    assert (await queue.get(job_id)).updated_at == start + timedelta(seconds=15)
    after = await queue.complete(job_id, token_of(job))
    assert after.updated_at == start + timedelta(seconds=20)


@suite.case(f"{SYSTEM}: attempt", "the current attempt, from 1; 0 before the first")
async def attempt(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    seen = [(await queue.get(job_id)).attempt]
    for _ in range(3):
        seen.append((await run(queue, job_id, error="no")).attempt)
        env.clock.advance(3600)
    assert seen == [0, 1, 2, 3]


@suite.case(f"{SYSTEM}: scheduled_at", "when the job became scheduled, for its current attempt")
async def scheduled_at(env: Env) -> None:
    queue = await open_queue(env)
    start = env.clock.now()
    parent = await queue.submit("t")
    child = await queue.submit("t", dependencies=[parent])
    late = await queue.submit("t", delay=100)
    assert (await queue.get(parent)).scheduled_at == start
    assert (await queue.get(child)).scheduled_at is None
    assert (await queue.get(late)).scheduled_at is None
    env.clock.advance(10)
    await run(queue, parent)
    assert (await queue.get(child)).scheduled_at == start + timedelta(seconds=10)
    env.clock.advance(10)
    job = await claimed(queue)
    assert (job.id, job.scheduled_at) == (child, start + timedelta(seconds=10))
    await queue.fail(child, token_of(job), "no")
    env.clock.advance(100)
    assert (await queue.get(late)).scheduled_at == start + timedelta(seconds=100)
    assert (await queue.get(child)).scheduled_at == start + timedelta(seconds=21)


@suite.case(f"{SYSTEM}: started_at", "when the current attempt started")
async def started_at(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    assert (await queue.get(job_id)).started_at is None
    for _ in range(2):
        env.clock.advance(50)
        job = await claimed(queue)
        assert job.started_at == env.clock.now()
        await queue.fail(job_id, token_of(job), "no")
    assert (await queue.get(job_id)).started_at == env.clock.now()


@suite.case(f"{SYSTEM}: completed_at", "when the job reached a terminal state, whichever it was")
async def completed_at(env: Env) -> None:
    queue = await open_queue(env)
    for outcome in ({}, {"error": "no", "category": "PERMANENT"}, {"error": "no"}):
        job_id = await queue.submit("t")
        env.clock.advance(7)
        after = await run(queue, job_id, **outcome)
        terminal = after.state is not JobState.RETRYING
        assert after.completed_at == (env.clock.now() if terminal else None)


@suite.case(f"{USER}: type", "required, and what a worker can ask for")
async def type_(env: Env) -> None:
    queue = await open_queue(env)
    for bad in ("", " ", None, 7):
        with raises(InvalidInput):
            await queue.submit(bad)  # type: ignore[arg-type]  # the point of the case
    with raises(TypeError):
        await queue.submit()  # type: ignore[call-arg]  # the point of the case
    mail, report = await queue.submit("mail"), await queue.submit("report")
    assert (await queue.get(mail)).type == "mail"
    assert (await claimed(queue, types=["report"])).id == report
    assert await queue.claim("w", types=["report"]) is None


@suite.case(f"{USER}: priority", "the level that was asked for")
async def priority(env: Env) -> None:
    queue = await open_queue(env)
    for level in Priority:
        assert (await queue.get(await queue.submit("t", priority=level))).priority is level


@suite.case(f"{USER}: tags", "a map comes back as the same map")
async def tags(env: Env) -> None:
    queue = await open_queue(env)
    given = {"team": "billing", "region": "eu-west", "note": "a=b", "empty": "", "N": "1"}
    job_id = await queue.submit("t", tags=given)
    assert (await queue.get(job_id)).tags == given
    assert (await claimed(queue)).tags == given
    assert (await queue.get(await queue.submit("t"))).tags == {}
    for bad in ({"a=b": "c"}, {"": "c"}, {7: "c"}, "text"):
        with raises(InvalidInput):
            await queue.submit("t", tags=bad)  # type: ignore[arg-type]  # the point of the case


@suite.case(f"{USER}: correlation_id, callback_url", "kept, and seen by the worker")
async def correlation_and_callback(env: Env) -> None:
    queue = await open_queue(env)
    url = "https://example.org/done?x=1"
    await queue.submit("t", correlation_id="trace-7", callback_url=url)
    job = await claimed(queue)
    assert (job.correlation_id, job.callback_url) == ("trace-7", url)
    for bad in ("", "not a url", "ftp://example.org"):
        with raises(InvalidInput):
            await queue.submit("t", callback_url=bad)


@suite.case(USER, "a request value carries every field, alone or in a batch, in order")
async def request_value(env: Env) -> None:
    queue = await open_queue(env)
    start = env.clock.now()
    request = JobRequest(
        "mail",
        {"n": 1},
        Priority.HIGH,
        {"a": "1"},
        delay=timedelta(seconds=5),
        idempotency_key="k",
        correlation_id="c",
        callback_url="https://example.org",
    )
    (first,) = await queue.submit_batch([request])
    assert await queue.submit(request) == first
    job = await queue.get(first)
    assert (job.type, job.payload, job.priority, job.tags) == (
        "mail",
        {"n": 1},
        Priority.HIGH,
        {"a": "1"},
    )
    assert (job.idempotency_key, job.correlation_id, job.callback_url) == (
        "k",
        "c",
        "https://example.org",
    )
    assert job.run_at == start + timedelta(seconds=5)
    with raises(InvalidInput):
        await queue.submit("t", delay=5, run_at=start)
    with raises(InvalidInput):
        await queue.submit("t", delay=-1)
    with raises(InvalidInput):
        await queue.submit("t", run_at=start.replace(tzinfo=None))


@suite.case(USER, "what is not a list, a request or a configuration is refused by name")
async def not_a_list(env: Env) -> None:
    queue = await open_queue(env)
    await queue.submit("spawner")
    spawner = await claimed(queue)
    token = token_of(spawner)
    bad: list[Any] = [5, True, object(), "text", b"bytes"]
    nothing: Any = None
    for wrong in (*bad, nothing, JobRequest("t")):
        with raises(InvalidInput):
            await queue.submit_batch(wrong)
        with raises(InvalidInput):
            await queue.spawn(spawner.id, token, wrong)
    for wrong in (*bad, nothing):
        with raises(InvalidInput):
            await queue.submit("t", dependencies=wrong)
        with raises(InvalidInput):
            await queue.submit("t", tags=wrong)
    for wrong in bad:
        with raises(InvalidInput):
            await queue.claim("w", types=wrong)
        with raises(InvalidInput):
            await queue.submit("t", retry=wrong)
        with raises(InvalidInput):
            await queue.submit("t", timeout=wrong)
        with raises(InvalidInput):
            await queue.spawn(spawner.id, token, [], wrong)
    assert await queue.claim("w") is None
    one_by_one: Any = (JobRequest("t") for _ in range(2))
    assert len(await queue.submit_batch(one_by_one)) == 2


@suite.case(f"{USER}: priority", "written to, it moves the job to its place in the line")
async def write_priority(env: Env) -> None:
    queue = await open_queue(env)
    first, second, third = [await queue.submit("t") for _ in range(3)]
    assert (await queue.update(third, priority=Priority.CRITICAL)).priority is Priority.CRITICAL
    await queue.update(first, priority=Priority.BULK)
    assert [(await claimed(queue)).id for _ in range(3)] == [third, second, first]


@suite.case(f"{USER}: tags", "written to, they are the map that was given")
async def write_tags(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t", tags={"team": "ops", "old": "1"})
    assert (await queue.update(job_id, tags={"team": "billing"})).tags == {"team": "billing"}
    assert (await queue.get(job_id)).tags == {"team": "billing"}
    assert (await queue.update(job_id, tags={})).tags == {}
    for bad in ({"a=b": "c"}, "text", 5, None):
        with raises(InvalidInput):
            await queue.update(job_id, tags=bad)  # type: ignore[arg-type]  # the point of the case


@suite.case(f"{USER}: correlation_id, callback_url", "written to, and taken away")
async def write_ids(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t", correlation_id="old")
    url = "https://example.org/done"
    job = await queue.update(job_id, correlation_id="new", callback_url=url)
    assert (job.correlation_id, job.callback_url) == ("new", url)
    job = await queue.update(job_id, correlation_id=None, callback_url=None)
    assert (job.correlation_id, job.callback_url) == (None, None)


@suite.case(USER, "written in every state that has not ended, and system metadata stays")
async def write_in_every_state(env: Env) -> None:
    queue = await open_queue(env)
    running = await queue.submit("t")
    job = await claimed(queue)
    pending = await queue.submit("t", dependencies=[running])
    delayed = await queue.submit("t", delay=100)
    env.clock.advance(5)
    for job_id in (running, pending, delayed):
        before = await queue.get(job_id)
        after = await queue.update(job_id, priority=Priority.HIGH, tags={"a": "1"})
        said = {"priority": Priority.HIGH, "tags": {"a": "1"}}
        for field in Job.__struct_fields__:
            wanted = said.get(field, getattr(before, field))
            assert getattr(after, field) == wanted, field
    await queue.complete(running, token_of(job))
    with raises(JobTerminal):
        await queue.update(running, priority=Priority.LOW)
    await queue.cancel(delayed)
    with raises(JobTerminal):
        await queue.update(delayed, priority=Priority.LOW)
    with raises(JobNotFound):
        await queue.update("00000000-0000-4000-8000-000000000000", priority=Priority.LOW)
    with raises(InvalidInput):
        await queue.update(pending)


@suite.case(f"{USER}: callback_url", "what carries the notification is no job of the caller's")
async def callback_job_hidden(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t", callback_url="https://example.org/done")
    await run(queue, job_id)
    assert await queue.claim("w") is None
    assert await queue.claim_batch("w", 10) == ()
