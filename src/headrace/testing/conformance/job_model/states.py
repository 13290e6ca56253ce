"""2. Lifecycle States: each state, as it is defined."""

from __future__ import annotations

from headrace.contracts.job_model import JobCancelled, JobState, JobTerminal, PermanentError
from headrace.contracts.job_model.job import state_of
from headrace.model import Job as StoredJob
from headrace.model import State
from headrace.testing.conformance.job_model.suite import (
    claimed,
    open_queue,
    run,
    state,
    suite,
    token_of,
)
from headrace.testing.conformance.kit import Env, raises

PART = "2. State Definitions"


@suite.case(
    PART, "the states are those of the specification, and CANCELLED, which it names in 6 and 8"
)
async def names(env: Env) -> None:  # noqa: ARG001 - about the vocabulary alone
    assert [name.value for name in JobState] == [
        "PENDING",
        "SCHEDULED",
        "DELAYED",
        "RUNNING",
        "COMPLETED",
        "FAILED",
        "RETRYING",
        "DEAD_LETTER",
        "CANCELLED",
    ]


@suite.case(PART, "every stored state has one name, due or not due")
async def vocabulary(env: Env) -> None:
    now = env.clock.now()
    env.clock.advance(1)
    later = env.clock.now()

    def name(stored: State, *, due: bool = True) -> str:
        job = StoredJob(
            id="j",
            type="t",
            created_at=now,
            updated_at=now,
            state=stored,
            run_at=now if due else later,
        )
        return state_of(job, now).value

    assert {one.value: name(one) for one in State} == {
        "blocked": "PENDING",
        "pending": "SCHEDULED",
        "running": "RUNNING",
        "cancelling": "RUNNING",
        "retrying": "SCHEDULED",
        "lost": "SCHEDULED",
        "completed": "COMPLETED",
        "failed": "FAILED",
        "dead": "DEAD_LETTER",
        "cancelled": "CANCELLED",
        "abandoned": "CANCELLED",
    }
    assert name(State.PENDING, due=False) == "DELAYED"
    assert name(State.RETRYING, due=False) == "RETRYING"


@suite.case(f"{PART}: PENDING", "accepted and persisted, awaiting other jobs; no worker gets it")
async def pending(env: Env) -> None:
    queue = await open_queue(env)
    first = await queue.submit("first")
    waits = await queue.submit("waits", dependencies=[first])
    assert await state(queue, waits) is JobState.PENDING
    assert await queue.claim("w", types=["waits"]) is None


@suite.case(f"{PART}: SCHEDULED", "queued for immediate execution when a worker is available")
async def scheduled(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    assert await state(queue, job_id) is JobState.SCHEDULED
    assert (await claimed(queue)).id == job_id


@suite.case(f"{PART}: DELAYED", "execution deferred until the specified time, by delay or run_at")
async def delayed(env: Env) -> None:
    queue = await open_queue(env)
    by_delay = await queue.submit("t", delay=60)
    moment = (await queue.get(by_delay)).run_at
    by_time = await queue.submit("t", run_at=moment)
    for job_id in (by_delay, by_time):
        assert await state(queue, job_id) is JobState.DELAYED
    env.clock.advance(59.999)
    assert await queue.claim("w") is None
    env.clock.advance(0.001)
    assert [(await claimed(queue)).id for _ in range(2)] == [by_delay, by_time]


@suite.case(f"{PART}: RUNNING", "dispatched to a worker, and to no other")
async def running(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    job = await claimed(queue, "w7")
    assert (job.state, job.worker) == (JobState.RUNNING, "w7")
    assert await queue.get(job_id) == job
    assert await queue.claim("w8") is None


@suite.case(f"{PART}: COMPLETED", "executed successfully; the result is stored")
async def completed(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    job = await claimed(queue)
    result = {"rows": 3, "ok": True}
    done = await queue.complete(job_id, token_of(job), result)
    assert (done.state, done.result) == (JobState.COMPLETED, result)
    assert await queue.get(job_id) == done


@suite.case(f"{PART}: FAILED", "a permanent failure; no retry, whatever attempts remain")
async def failed(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    after = await run(queue, job_id, error=PermanentError("bad payload", code="BAD"))
    assert (after.state, after.attempt) == (JobState.FAILED, 1)
    env.clock.advance(86_400)
    assert await queue.claim("w") is None


@suite.case(f"{PART}: RETRYING", "failed, and scheduled for a retry after the backoff")
async def retrying(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t")
    after = await run(queue, job_id, error="no")
    assert after.state is JobState.RETRYING
    assert (after.run_at - env.clock.now()).total_seconds() == 1
    assert await queue.claim("w") is None


@suite.case(f"{PART}: DEAD_LETTER", "retries exhausted; it stays, with its payload and its error")
async def dead_letter(env: Env) -> None:
    queue = await open_queue(env)
    job_id = await queue.submit("t", {"keep": "me"})
    for _ in range(3):
        await run(queue, job_id, error="still no")
        env.clock.advance(3600)
    dead = await queue.get(job_id)
    assert (dead.state, dead.attempt, dead.payload) == (JobState.DEAD_LETTER, 3, {"keep": "me"})
    assert dead.failure is not None
    assert dead.failure.message == "still no"
    assert await queue.claim("w") is None


@suite.case("2. Lifecycle States", "transitions are unidirectional: nothing moves a terminal job")
async def unidirectional(env: Env) -> None:
    queue = await open_queue(env)
    ends = {
        "COMPLETED": {},
        "FAILED": {"error": "no", "category": "PERMANENT"},
        "CANCELLED": {"error": "stopped", "category": "CANCELLED"},
    }
    for expected, outcome in ends.items():
        job_id = await queue.submit("t")
        job = await claimed(queue)
        if outcome:
            ended = await queue.fail(job_id, token_of(job), **outcome)
        else:
            ended = await queue.complete(job_id, token_of(job))
        assert ended.state.value == expected
        for write in (
            queue.complete(job_id, token_of(job)),
            queue.fail(job_id, token_of(job), "late"),
            queue.heartbeat(job_id, token_of(job)),
            queue.checkpoint(job_id, token_of(job), 1),
        ):
            with raises(JobTerminal, JobCancelled):
                await write
        env.clock.advance(86_400 * 8)
        await queue.claim("w")
        assert await queue.get(job_id) == ended
