"""Time passes while a claim is made: what becomes due meanwhile is not left for the next look."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from headrace import JobSpec, connect
from headrace.clock import ManualClock
from headrace.model import Job
from headrace.stores.base import ClaimRequest, JobStore

NOW = datetime(2026, 7, 1, tzinfo=UTC)


async def test_what_becomes_due_while_it_is_claimed_is_due_at_once(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock(NOW)
    async with await connect(store_url, clock=clock) as manager:
        due = NOW + timedelta(milliseconds=3)
        await manager.submit(JobSpec(type="t", id="soon", run_at=due))
        await manager.submit(JobSpec(type="t", id="late", run_at=NOW + timedelta(hours=1)))
        claim = type(manager.store).claim

        async def slow(store: JobStore, request: ClaimRequest) -> Sequence[Job]:
            jobs = await claim(store, request)
            clock.advance(0.005)
            return jobs

        monkeypatch.setattr(type(manager.store), "claim", slow)
        first = await manager.claim_ahead("w")
        assert (first.jobs, first.next_at) == ((), due)
        (job,) = (await manager.claim_ahead("w")).jobs
        assert job.id == "soon"
