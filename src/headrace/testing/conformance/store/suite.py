"""The suite of the store protocol, and the samples its cases are made of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from headrace import lifecycle
from headrace.connect import open_store
from headrace.lifecycle import Command
from headrace.model import Change, Event, Job, State
from headrace.stores.base import (
    GATE,
    ClaimRequest,
    Commit,
    Committed,
    Inserted,
    Insertion,
    JobStore,
    Record,
    Share,
)
from headrace.testing.conformance.kit import Env, Suite

suite = Suite("store", "the store protocol, headrace.stores.base")

T0 = datetime(2026, 1, 1, tzinfo=UTC)

LANE: dict[str, Any] = {
    "tenant": "default",
    "queue": "default",
    "type": "t",
    "priority": 2,
    "limit_key": None,
}
"""The lane of a job with everything at its default."""


def at(seconds: float) -> datetime:
    """So many seconds after the beginning of the case."""
    return T0 + timedelta(seconds=seconds)


async def opened(env: Env) -> JobStore:
    """The case's empty store itself, without a manager."""
    return env.closing(await open_store(env.url))


def job(job_id: str, **fields: Any) -> Job:
    """A pending job with everything at its default."""
    given: dict[str, Any] = {"type": "t", "created_at": T0, "run_at": T0, "updated_at": T0}
    return Job(id=job_id, state=State.PENDING, **(given | fields))


def insertion(*jobs: Job, waits: bool = False, **rest: Any) -> Insertion:
    born = [lifecycle.submit(one, waits=waits) for one in jobs]
    given: dict[str, Any] = {"now": T0}
    return Insertion(
        jobs=[row for row, _ in born], events=[event for _, event in born], **(given | rest)
    )


async def insert(store: JobStore, *jobs: Job, waits: bool = False, **rest: Any) -> Sequence[Job]:
    """Insert, and expect no clash."""
    answer = await store.insert(insertion(*jobs, waits=waits, **rest))
    assert isinstance(answer, Inserted), answer
    return answer.jobs


def request(worker: str = "w", **fields: Any) -> ClaimRequest:
    """Whatever is due at the beginning of the case, a hundred at most."""
    given: dict[str, Any] = {"now": T0, "limit": 100, "nonce": "n"}
    return ClaimRequest(worker=worker, **(given | fields))


async def claim(store: JobStore, worker: str = "w", **fields: Any) -> Sequence[Job]:
    """One job, unless told otherwise."""
    return await store.claim(request(worker, **({"limit": 1} | fields)))


def share(jobs: int, **lane: Any) -> Share:
    """So many of the lane of `job(…)`, or of one that differs from it as told."""
    return Share(jobs=jobs, **(LANE | lane))


async def gated(store: JobStore, *queues: str, body: bytes = b"{}") -> list[Record]:
    """The new gates of these queues, as stored."""
    for queue in queues:
        assert await store.put_record(Record(kind=GATE, name=queue, body_json=body))
    return list(await store.records(GATE, queues))


async def commit(
    store: JobStore, rows: Sequence[Job], command: Command, *, now: datetime = T0, **rest: Any
) -> Committed:
    """Apply the command to each row as given, and commit the changes."""
    changes = [lifecycle.apply(row, command, now) for row in rows]
    return await store.commit(Commit(changes=changes, **rest))


async def stored(store: JobStore, job_id: str) -> Job:
    return (await store.get([job_id]))[job_id]


def change(row: Job, command: Command, *, now: datetime = T0) -> Change:
    return lifecycle.apply(row, command, now)


def without_place(event: Event) -> Event:
    """The event as the lifecycle made it: without what the store adds."""
    return replace(event, seq=0, cursor="")
