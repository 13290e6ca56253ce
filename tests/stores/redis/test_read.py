"""Finds over all rows: every filter, both orders, page by page, where most seqs are gone, too."""

from __future__ import annotations

import random
from typing import Any

import pytest

from headrace import JobManager, JobSpec, connect
from headrace.stores.redis import search

FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"types": ["rare"]},
    {"types": ["rare", "t"], "queues": ["q-1"]},
    {"queues": ["q-0", "nothing"]},
    {"types": ["nothing"]},
    {"assignee": "w-1"},
    {"assignee": "w"},
    {"tags": ["even"]},
    {"tags": ["even", "third"], "assignee": "w-0"},
    {"states": ["pending", "completed"], "types": ["t"]},
    {"states": ["completed"], "types": ["rare"]},
)


async def every_job(jobs: JobManager, limit: int, **filters: Any) -> list[str]:
    """Page by page."""
    found: list[str] = []
    cursor = None
    while True:
        page = await jobs.find(limit=limit, cursor=cursor, **filters)
        found += [job.id for job in page]
        cursor = page.cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("share_kept", [1.0, 0.1])
async def test_a_scan_finds_what_looking_at_every_job_finds(
    redis_url: str, share_kept: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_SCAN_ROWS_PER_CALL", 1)  # as few as a call can do
    dice = random.Random(5)
    async with await connect(redis_url) as jobs:
        specs = [
            JobSpec(
                type="rare" if n % 97 == 0 else "t",
                queue=f"q-{n % 3}",
                tags=[tag for tag, every in (("even", 2), ("third", 3)) if n % every == 0],
                id=f"j{n:04}",
            )
            for n in range(2500)
        ]
        await jobs.submit_many(specs)
        for worker in range(2):
            for job in await jobs.claim(f"w-{worker}", limit=200):
                await jobs.complete(job.id, job.token)
        await jobs.cancel([one.id for one in specs if dice.random() < 0.2])  # type: ignore[misc]
        everyone = [job async for job in jobs.find(newest_first=False)]
        if share_kept < 1:
            gone = [job.id for job in everyone if job.is_terminal and dice.random() > share_kept]
            live = [job.id for job in everyone if not job.is_terminal]
            gone += [job_id for job_id in live if dice.random() > share_kept]
            await jobs.cancel(gone)
            await jobs.delete(gone)
            everyone = [job async for job in jobs.find()]
        assert len(everyone) > 200
        for filters in FILTERS:
            wanted = [job.id for job in everyone if matches(job, **filters)]
            assert await every_job(jobs, 100, **filters) == wanted, filters
            backwards = await every_job(jobs, 77, newest_first=True, **filters)
            assert backwards == wanted[::-1], filters


def matches(
    job: Any,
    *,
    types: list[str] | None = None,
    queues: list[str] | None = None,
    states: list[str] | None = None,
    tags: list[str] | None = None,
    assignee: str | None = None,
) -> bool:
    return (
        (types is None or job.type in types)
        and (queues is None or job.queue in queues)
        and (states is None or job.state in states)
        and set(tags or ()) <= set(job.tags)
        and (assignee is None or job.assignee == assignee)
    )
