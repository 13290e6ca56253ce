"""Jobs, insertions and short ways to work them off, for the tests of the SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from headrace import lifecycle
from headrace.model import Job, State, new_id
from headrace.stores.base import ClaimRequest, Commit, Inserted, Insertion
from headrace.stores.sqlite import SqliteStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def new_job(**fields: Any) -> Job:
    defaults: dict[str, Any] = {
        "id": new_id(),
        "type": "mail",
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
    born = [lifecycle.submit(job, waits=job.state is State.BLOCKED) for job in jobs]
    return Insertion(
        jobs=[job for job, _ in born], events=[event for _, event in born], now=NOW, **more
    )


async def insert(store: SqliteStore, *jobs: Job, **more: Any) -> Sequence[Job]:
    answer = await store.insert(insertion(jobs, **more))
    assert isinstance(answer, Inserted)
    return answer.jobs


async def insert_many(store: SqliteStore, count: int, **fields: Any) -> None:
    for start in range(0, count, 2000):
        await insert(store, *(new_job(**fields) for _ in range(min(2000, count - start))))


def request(limit: int = 1, *, now: datetime = NOW, **more: Any) -> ClaimRequest:
    return ClaimRequest(worker="w1", now=now, limit=limit, nonce="n", **more)


async def complete(store: SqliteStore, jobs: Sequence[Job]) -> None:
    changes = [
        lifecycle.apply(job, lifecycle.Complete(token=job.token, result_json=b"1"), NOW)
        for job in jobs
    ]
    committed = await store.commit(Commit(changes=changes))
    assert all(committed.applied)


def rows(path: Path, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """What another program would see in the file."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql, parameters).fetchall()
