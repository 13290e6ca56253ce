"""Jobs, insertions and short ways to work them off, for the tests of the PostgreSQL store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace import lifecycle
from headrace.model import Job, State, new_id
from headrace.stores.base import ClaimRequest, Commit, Inserted, Insertion, JobStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def draft(**fields: Any) -> Job:
    defaults: dict[str, Any] = {
        "id": new_id(),
        "type": "send",
        "payload_json": b'{"to":"you"}',
        "created_at": NOW,
        "state": State.PENDING,
        "run_at": NOW,
        "updated_at": NOW,
        "max_attempts": 3,
        "lease_seconds": 30.0,
        "expires_at": NOW + timedelta(days=7),
    }
    return Job(**{**defaults, **fields})


def insertion(jobs: Sequence[Job], **more: Any) -> Insertion:
    born = [lifecycle.submit(job) for job in jobs]
    return Insertion(
        jobs=[job for job, _ in born], events=[event for _, event in born], now=NOW, **more
    )


async def insert(store: JobStore, *jobs: Job, **more: Any) -> Sequence[Job]:
    answer = await store.insert(insertion(jobs, **more))
    assert isinstance(answer, Inserted)
    return answer.jobs


def request(limit: int = 1, *, now: datetime = NOW, **more: Any) -> ClaimRequest:
    return ClaimRequest(worker="w1", now=now, limit=limit, nonce="n", **more)


def completion(jobs: Sequence[Job], now: datetime = NOW) -> Commit:
    return Commit(
        changes=[
            lifecycle.apply(job, lifecycle.Complete(token=job.token, result_json=b"1"), now)
            for job in jobs
        ]
    )


async def complete(store: JobStore, jobs: Sequence[Job], now: datetime = NOW) -> None:
    committed = await store.commit(completion(jobs, now))
    assert all(committed.applied)
