"""Jobs and events come back exactly as they went in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import fields, replace

from headrace import lifecycle
from headrace.model import Category, EventKind, Failure, Job, Priority, State
from headrace.stores.base import Commit, EventQuery, Fence, Insertion, Note, Query, Rewrite
from headrace.stores.sqlite import SqliteStore
from tests.stores.sqlite.samples import NOW, complete, insert, new_job, request, rows

AT = datetime(2026, 3, 4, 5, 6, 7, 890123, tzinfo=UTC)


def full_job() -> Job:
    """A job in which every field differs from its default, except what a lease leaves unset."""
    return Job(
        id="job/ü-1",
        tenant="tenänt",
        queue="queue",
        type="type",
        tags=("a=1", 'b="2"', "日本"),
        payload_json='{"k":"ü\\u0000"}'.encode(),
        priority=Priority.BULK,
        created_at=AT,
        key="key",
        previous_id="previous",
        parent_id="parent",
        correlation_id="correlation",
        callback_url="https://example.org/?a=b",
        limit_key="kündé",
        depth=7,
        max_attempts=9,
        lease_seconds=0.1 + 0.2,
        timeout_seconds=1e-9,
        expires_at=datetime.max.replace(tzinfo=UTC),
        backoff_json=b'{"type":"none"}',
        state=State.COMPLETED,
        version=12,
        run_at=datetime.min.replace(tzinfo=UTC),
        updated_at=AT + timedelta(microseconds=1),
        attempt=4,
        failures=2,
        losses=1,
        assignee="w",
        assigned_at=AT + timedelta(microseconds=2),
        scheduled_at=AT + timedelta(microseconds=3),
        started_at=AT + timedelta(microseconds=4),
        last_failed_at=AT + timedelta(microseconds=5),
        finalized_at=AT + timedelta(microseconds=6),
        failure=Failure("message\n" * 1000, Category.SYSTEM, "CODE"),
    )


async def test_every_field_of_a_job(store: SqliteStore) -> None:
    job = full_job()
    leased = {"token", "lease_until", "progress", "progress_note", "checkpoint_json", "log_json"}
    for field in fields(Job):
        if field.name not in leased | {"seq", "result_json", "seals"}:
            assert getattr(job, field.name) != field.default
    _, event = lifecycle.submit(job)
    answer = await store.insert(Insertion(jobs=[job], events=[event], now=NOW))
    (stored,) = answer.jobs  # type: ignore[union-attr]
    assert await store.get([job.id]) == {job.id: stored}
    assert replace(stored, seq=0) == job


async def test_what_leases_notes_and_results_add(store: SqliteStore) -> None:
    await insert(store, new_job(id="a"))
    (job,) = await store.claim(request())
    assert (await store.get(["a"]))["a"] == job
    assert job.token is not None
    fence = Fence("a", job.token)
    assert await store.annotate(fence, Note(progress=0.1 + 0.2), NOW)
    assert await store.annotate(fence, Note(progress_note="half"), NOW)
    assert await store.annotate(fence, Note(checkpoint_json=b'{"page":3}'), NOW)
    assert await store.annotate(fence, Note(log_json=b'["line"]'), NOW)
    assert await store.annotate(fence, Note(), NOW)
    await store.extend({fence: 77.7}, NOW)
    (noted,) = await store.find(Query())
    assert (noted.progress, noted.progress_note, noted.checkpoint, noted.log) == (
        0.1 + 0.2,
        "half",
        {"page": 3},
        ["line"],
    )
    assert noted.lease_until == NOW + timedelta(seconds=77.7)
    assert noted.version == job.version
    await complete(store, [job])
    (done,) = await store.find(Query())
    assert (done.result, done.checkpoint, done.log, done.lease_until) == (
        1,
        {"page": 3},
        ["line"],
        None,
    )


async def test_every_field_of_an_event(store: SqliteStore, path: Path) -> None:
    await insert(store, new_job(id="a", tags=("x",), tenant="t1", priority=0))
    await insert(store, new_job(id="b"))
    (job, _) = await store.claim(request(2))
    failure = Failure("m" * 2000, Category.TIMEOUT, "SLOW")
    change = lifecycle.apply(
        job, lifecycle.Fail(token=job.token, failure=failure, retry=False), NOW
    )
    await store.commit(Commit(changes=[change]))
    events = await store.events(EventQuery(job_id="a"))
    assert [event.kind for event in events] == [
        EventKind.ENQUEUED,
        EventKind.LEASED,
        EventKind.FAILED,
    ]
    assert replace(events[2], seq=0, cursor="") == change.event
    assert [event.cursor for event in events] == [str(event.seq) for event in events]
    assert events[0].detail_json == lifecycle.submit(new_job(id="a", tags=("x",)))[1].detail_json
    assert await store.events(EventQuery(tenant="t1")) == events
    assert await store.events(EventQuery(tenant="t1", after=events[0].cursor, limit=1)) == [
        events[1]
    ]
    seen_outside = rows(path, "SELECT seq, tenant, queue, type, priority, job_id FROM event_log")
    assert seen_outside == [
        (event.seq, event.tenant, event.queue, event.type, event.priority, event.job_id)
        for event in await store.events(EventQuery())
    ]


async def test_the_events_of_a_deleted_job_are_found_by_its_id(store: SqliteStore) -> None:
    for _ in range(2):
        await insert(store, new_job(id="a"), new_job(id=f"other-{_}"))
        await complete(store, await store.claim(request(2)))
        assert await store.delete({"a": 3})
    assert await store.get(["a"]) == {}
    await insert(store, new_job(id="a"))
    events = await store.events(EventQuery(job_id="a"))
    assert [event.kind for event in events] == [
        *[EventKind.ENQUEUED, EventKind.LEASED, EventKind.COMPLETED] * 2,
        EventKind.ENQUEUED,
    ]
    assert [event.seq for event in await store.events(EventQuery())] == list(range(1, 14))


async def test_a_seq_is_never_given_twice(store: SqliteStore) -> None:
    (job,) = await insert(store, new_job())
    assert await store.delete({job.id: 1})
    (next_job,) = await insert(store, new_job())
    assert next_job.seq == job.seq + 1


@pytest.mark.parametrize("count", [1, 7, 64, 65])
async def test_rewrites_of_every_size(store: SqliteStore, count: int) -> None:
    jobs = await insert(store, *(new_job() for _ in range(count)))
    await complete(store, await store.claim(request(count)))
    rewrites = [
        Rewrite(
            job_id=job.id,
            version=3,
            payload_json=b"%d" % job.seq,
            result_json=b"[%d]" % job.seq,
            checkpoint_json=b"[[%d]]" % job.seq,
        )
        for job in jobs
    ]
    assert await store.rewrite(rewrites) == [True] * count
    last = replace(rewrites[0], payload_json=b'"last"')
    assert await store.rewrite([*rewrites[:1], last, replace(last, version=9)]) == [
        True,
        True,
        False,
    ]
    found = await store.find(Query(limit=1000))
    assert [job.payload for job in found] == ["last", *(job.seq for job in jobs[1:])]
    assert [(job.result, job.checkpoint) for job in found] == [
        ([job.seq], [[job.seq]]) for job in jobs
    ]


@pytest.mark.parametrize("count", [1, 7, 8, 63, 64, 65, 200])
async def test_batches_of_every_size(store: SqliteStore, count: int) -> None:
    jobs = await insert(store, *(new_job(tags=("a", "b")) for _ in range(count)))
    assert [job.seq for job in jobs] == list(range(1, count + 1))
    claimed = await store.claim(request(count))
    assert [job.id for job in claimed] == [job.id for job in jobs]
    await complete(store, claimed)
    found = await store.find(Query(limit=1000, states=[State.COMPLETED]))
    assert [job.id for job in found] == [job.id for job in jobs]
    assert await store.delete({job.id: job.version for job in found})
    assert await store.count(NOW) == []
