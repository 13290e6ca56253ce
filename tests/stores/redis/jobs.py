"""Jobs for the Redis tests, made without a manager."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace import lifecycle
from headrace.model import Change, Job, State, new_id
from headrace.stores.base import ClaimRequest, Inserted, Insertion
from headrace.stores.redis import RedisStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def draft(**fields: Any) -> Job:
    chosen: dict[str, Any] = {
        "id": new_id(),
        "type": "send",
        "created_at": NOW,
        "run_at": NOW,
        "updated_at": NOW,
        "state": State.PENDING,
        "lease_seconds": 30.0,
        "max_attempts": 3,
        "expires_at": NOW + timedelta(days=7),
    }
    return Job(**(chosen | fields))


def insertion(jobs: Sequence[Job]) -> Insertion:
    born = [lifecycle.submit(job) for job in jobs]
    return Insertion(jobs=[job for job, _ in born], events=[event for _, event in born], now=NOW)


async def insert(store: RedisStore, *jobs: Job) -> Sequence[Job]:
    answer = await store.insert(insertion(jobs))
    assert isinstance(answer, Inserted)
    return answer.jobs


def request(limit: int = 1, now: datetime = NOW, **fields: Any) -> ClaimRequest:
    return ClaimRequest(worker="w1", now=now, limit=limit, nonce="nonce", **fields)


def completion(job: Job, now: datetime = NOW) -> Change:
    return lifecycle.apply(job, lifecycle.Complete(token=job.token, result_json=b'"ok"'), now)
