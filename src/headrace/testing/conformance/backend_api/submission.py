"""Job Submission: EnqueueJob, EnqueueJobs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from headrace.contracts.backend_api import (
    Backend,
    BackendError,
    DuplicateJobError,
    InvalidArgumentError,
    Job,
    JobNotFoundError,
    JobStatus,
    Queue,
)
from headrace.contracts.presets import BACKEND_API
from headrace.testing.conformance.backend_api.suite import STATUSES, S, drain, suite
from headrace.testing.conformance.kit import CaseFunction, Env, raises

NOBODY: Any = None


@suite.case("EnqueueJob: Preconditions", "a nil job is refused")
async def nil_job(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    with raises(InvalidArgumentError):
        await backend.enqueue_job(NOBODY)
    assert (await backend.get_job_stats([])).total_jobs == 0


@suite.case("EnqueueJob: Preconditions", "an empty ID is refused")
async def empty_id(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    with raises(InvalidArgumentError):
        await backend.enqueue_job(Job(id=""))
    assert (await backend.get_job_stats([])).total_jobs == 0


def _status_refused(status: JobStatus) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        with raises(InvalidArgumentError):
            await backend.enqueue_job(Job(id="a", status=status))
        with raises(JobNotFoundError):
            await backend.get_job("a")

    return case


for _status in STATUSES:
    if _status is not S.INITIAL_PENDING:
        suite.case("EnqueueJob: Preconditions", f"a job that says {_status} is refused")(
            _status_refused(_status)
        )


@suite.case("EnqueueJob: Preconditions", "a new job with history is refused")
async def history_refused(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    at = env.clock.now()
    for job in (
        Job(id="a", retry_count=1),
        Job(id="a", assignee_id="w"),
        Job(id="a", started_at=at),
        Job(id="a", finalized_at=at),
        Job(id="a", result=b"r"),
        Job(id="a", error_message="no"),
    ):
        with raises(InvalidArgumentError):
            await backend.enqueue_job(job)
    assert (await backend.get_job_stats([])).total_jobs == 0


@suite.case("EnqueueJob: Preconditions", "the size limit counts the payload as it was given")
async def payload_size(env: Env) -> None:
    limit = BACKEND_API.payload_bytes_max
    awkward = ["\N{CYCLONE}" * 250 + f"{n:03}" for n in reversed(range(64))]
    for opened in (await env.open(Backend), await env.open(Queue), Queue(await env.open(Backend))):
        backend: Backend = opened
        name = f"{type(opened).__name__}-{id(opened)}"
        at = env.clock.now()
        for n, payload in enumerate((b"\xff" * limit, "x" * (limit - 2))):
            job_id = f"{name}-{n}"
            await backend.enqueue_job(Job(job_id, payload=payload, tags=awkward, created_at=at))
            stored = await backend.get_job(job_id)
            assert (stored.payload, stored.tags, stored.created_at) == (payload, awkward, at)
        for payload in (b"\xff" * (limit + 1), "x" * (limit - 1)):
            with raises(InvalidArgumentError):
                await backend.enqueue_job(Job(f"{name}-large", payload=payload))
            with raises(JobNotFoundError):
                await backend.get_job(f"{name}-large")


@suite.case("EnqueueJob: Postconditions", "returns the job's ID")
async def returns_id(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    assert await backend.enqueue_job(Job(id="job-1")) == "job-1"


@suite.case(
    "EnqueueJob: Postconditions", "the status is INITIAL_PENDING and nothing has happened yet"
)
async def born_pending(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a"))
    job = await backend.get_job("a")
    assert job == Job(id="a", created_at=env.clock.now())
    assert job.status is S.INITIAL_PENDING


@suite.case("EnqueueJob: Postconditions", "all fields are preserved")
async def fields_preserved(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    given = Job(
        id="a",
        job_type="email",
        payload=bytes(range(256)),
        tags=["urgent", "alpha", "Émile", "k=v"],
        created_at=datetime(2025, 6, 1, 12, 30, 15, 123456, tzinfo=UTC),
    )
    await backend.enqueue_job(given)
    assert await backend.get_job("a") == given
    assert await backend.dequeue_jobs("w", [], 1) != []
    await backend.fail_job("a", "no")
    job = await backend.get_job("a")
    assert (job.created_at, job.tags, job.payload) == (given.created_at, given.tags, given.payload)


@suite.case("EnqueueJob: Postconditions", "an empty payload is not the same as none")
async def empty_payload(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id="empty", payload=b""), Job(id="none")])
    assert (await backend.get_job("empty")).payload == b""
    assert (await backend.get_job("none")).payload is None


@suite.case("EnqueueJob: Postconditions", "created_at in another time zone is the same moment")
async def created_elsewhere(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    there = datetime(2025, 6, 1, 12, tzinfo=timezone(timedelta(hours=5)))
    await backend.enqueue_job(Job(id="a", created_at=there))
    assert (await backend.get_job("a")).created_at == datetime(2025, 6, 1, 7, tzinfo=UTC)


@suite.case("EnqueueJob: Postconditions", "the job is available for DequeueJobs at once")
async def available(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a"))
    assert [job.id for job in await backend.dequeue_jobs("w", [], 5)] == ["a"]


@suite.case(
    "EnqueueJob: Postconditions", "a job created in the future is available for DequeueJobs at once"
)
async def available_from_the_future(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    later = env.clock.now() + timedelta(days=1)
    await backend.enqueue_job(Job(id="a", created_at=later))
    (job,) = await backend.dequeue_jobs("w", [], 5)
    assert (job.id, job.created_at) == ("a", later)


@suite.case("EnqueueJob: Postconditions", "no partial job record exists after an error")
async def no_partial_record(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    with raises(InvalidArgumentError):
        await backend.enqueue_job(Job(id="a", tags=["fine", ""]))
    with raises(JobNotFoundError):
        await backend.get_job("a")
    assert (await backend.get_job_stats(["fine"])).total_jobs == 0


@suite.case("EnqueueJob: Observable Effects", "only DequeueJobs with matching tags get the job")
async def matching_dequeue(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a", tags=["x", "y"]))
    assert await drain(backend, tags=["x", "z"]) == set()
    assert await drain(backend, tags=["y"]) == {"a"}


@suite.case("EnqueueJob: Observable Effects", "the job appears in the stats of its tags")
async def in_stats(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a", tags=["x"]))
    assert (await backend.get_job_stats(["x"])).pending_jobs == 1
    assert (await backend.get_job_stats(["y"])).total_jobs == 0


@suite.case("EnqueueJob: Observable Effects", "GetJob finds the job at once")
async def found_at_once(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a"))
    assert (await backend.get_job("a")).id == "a"


@suite.case("EnqueueJob: Backend Expectations", "concurrent creation stores every job once")
async def concurrent_creation(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    ids = [f"job-{number}" for number in range(50)]
    assert await asyncio.gather(*(backend.enqueue_job(Job(id=job_id)) for job_id in ids)) == ids
    assert (await backend.get_job_stats([])).pending_jobs == 50


@suite.case(
    "EnqueueJob: Backend Expectations", "of concurrent jobs with one ID a single one is stored"
)
async def concurrent_duplicates(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    answers = await asyncio.gather(
        *(backend.enqueue_job(Job(id="a", payload=bytes([n]))) for n in range(10)),
        return_exceptions=True,
    )
    assert sum(answer == "a" for answer in answers) == 1
    assert sum(isinstance(answer, DuplicateJobError) for answer in answers) == 9
    winner = next(n for n, answer in enumerate(answers) if answer == "a")
    assert (await backend.get_job("a")).payload == bytes([winner])


@suite.case("EnqueueJob: Backend Expectations", "all tags are stored")
async def all_tags(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    tags = [f"tag-{number}" for number in range(20)]
    await backend.enqueue_job(Job(id="a", tags=tags))
    assert (await backend.get_job("a")).tags == tags
    for tag in tags:
        assert (await backend.get_job_stats([tag])).total_jobs == 1


@suite.case("EnqueueJob: Error Conditions", "an ID that exists is an error and changes nothing")
async def duplicate(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a", payload=b"first", tags=["x"]))
    before = await backend.get_job("a")
    with raises(DuplicateJobError) as caught:
        await backend.enqueue_job(Job(id="a", payload=b"second", tags=["y"]))
    assert isinstance(caught.error, BackendError)
    assert caught.error.job_id == "a"
    assert await backend.get_job("a") == before
    assert (await backend.get_job_stats(["y"])).total_jobs == 0


@suite.case("EnqueueJob: Error Conditions", "the ID of a final job is taken too")
async def duplicate_of_final(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="a"))
    await backend.cancel_jobs([], ["a"])
    with raises(DuplicateJobError):
        await backend.enqueue_job(Job(id="a"))
    assert (await backend.get_job("a")).status is S.UNSCHEDULED


@suite.case("EnqueueJob: Error Conditions", "a job that fails validation is an error")
async def validation(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    naive = datetime(2025, 1, 1)  # noqa: DTZ001 - no time zone is what is wrong with it
    not_tags: Any = "ab"
    for job in (
        Job(id="a", tags=[""]),
        Job(id="a", tags=not_tags),
        Job(id="a", job_type=""),
        Job(id="a", created_at=naive),
        Job(id="a", payload=object()),
        Job(id="a", payload=b"x" * 2_000_000),
    ):
        with raises(InvalidArgumentError):
            await backend.enqueue_job(job)
    assert (await backend.get_job_stats([])).total_jobs == 0


@suite.case("EnqueueJobs: Preconditions", "an empty slice stores nothing and is no error")
async def empty_batch(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    assert await backend.enqueue_jobs([]) == []
    assert (await backend.get_job_stats([])).total_jobs == 0


def _bad_batch(bad: Any, kind: type[BackendError]) -> CaseFunction:
    async def case(env: Env) -> None:
        backend: Backend = await env.open(Backend)
        await backend.enqueue_job(Job(id="stored", payload=b"kept"))
        with raises(kind) as caught:
            await backend.enqueue_jobs([Job(id="a"), Job(id="b"), bad, Job(id="c")])
        assert isinstance(caught.error, BackendError)
        assert caught.error.index == 2
        assert (await backend.get_job_stats([])).total_jobs == 1
        assert (await backend.get_job("stored")).payload == b"kept"
        for job_id in ("a", "b", "c"):
            with raises(JobNotFoundError):
                await backend.get_job(job_id)

    return case


for _title, _bad, _kind in (
    ("a nil job refuses the whole batch", None, InvalidArgumentError),
    ("an empty ID refuses the whole batch", Job(id=""), InvalidArgumentError),
    ("an ID twice in the batch refuses all of it", Job(id="a"), DuplicateJobError),
    (
        "a status other than INITIAL_PENDING refuses the whole batch",
        Job(id="d", status=S.RUNNING),
        InvalidArgumentError,
    ),
    ("an ID that exists refuses the whole batch", Job(id="stored"), DuplicateJobError),
):
    suite.case("EnqueueJobs: Preconditions", _title)(_bad_batch(_bad, _kind))


@suite.case("EnqueueJobs: Postconditions", "returns the IDs in the order of the jobs")
async def batch_ids(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    ids = ["c", "a", "b", "z", "m"]
    assert await backend.enqueue_jobs([Job(id=job_id) for job_id in ids]) == ids


@suite.case("EnqueueJobs: Postconditions", "all jobs are stored INITIAL_PENDING and available")
async def batch_available(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id=f"j{n}", payload=bytes([n]), tags=["t"]) for n in range(9)])
    for n in range(9):
        job = await backend.get_job(f"j{n}")
        assert (job.status, job.payload) == (S.INITIAL_PENDING, bytes([n]))
    assert await drain(backend) == {f"j{n}" for n in range(9)}


@suite.case("EnqueueJobs: Postconditions", "nothing is returned and nothing is stored on error")
async def batch_all_or_nothing(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="last"))
    with raises(BackendError):
        await backend.enqueue_jobs([*(Job(id=f"j{n}") for n in range(5)), Job(id="last")])
    assert (await backend.get_job_stats([])).total_jobs == 1


@suite.case("EnqueueJobs: Observable Effects", "all jobs appear in stats and queries")
async def batch_in_stats(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_jobs([Job(id="a", tags=["x"]), Job(id="b", tags=["x"]), Job(id="c")])
    assert (await backend.get_job_stats(["x"])).pending_jobs == 2
    assert (await backend.get_job_stats([])).pending_jobs == 3
    assert (await backend.get_job("c")).status is S.INITIAL_PENDING


@suite.case(
    "EnqueueJobs: Backend Expectations", "of concurrent batches that overlap one is stored whole"
)
async def overlapping_batches(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    answers = await asyncio.gather(
        backend.enqueue_jobs([Job(id="a1"), Job(id="shared"), Job(id="a2")]),
        backend.enqueue_jobs([Job(id="b1"), Job(id="b2"), Job(id="shared")]),
        return_exceptions=True,
    )
    stored = [answer for answer in answers if isinstance(answer, list)]
    assert len(stored) == 1
    assert sum(isinstance(answer, DuplicateJobError) for answer in answers) == 1
    assert await drain(backend) == set(stored[0])


@suite.case("EnqueueJobs: Error Conditions", "the error says which job failed")
async def batch_names_culprit(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    await backend.enqueue_job(Job(id="taken"))
    with raises(DuplicateJobError) as caught:
        await backend.enqueue_jobs([Job(id="new"), Job(id="taken")])
    assert isinstance(caught.error, BackendError)
    assert (caught.error.index, caught.error.job_id) == (1, "taken")
    assert "taken" in str(caught.error)
    with raises(InvalidArgumentError) as caught:
        await backend.enqueue_jobs([Job(id="new"), Job(id="bad", tags=[""])])
    assert isinstance(caught.error, BackendError)
    assert (caught.error.index, caught.error.job_id) == (1, "bad")
    assert "bad" in str(caught.error)


@suite.case("EnqueueJobs: Error Conditions", "no slice at all is an error")
async def nil_batch(env: Env) -> None:
    backend: Backend = await env.open(Backend)
    with raises(InvalidArgumentError):
        await backend.enqueue_jobs(NOBODY)
