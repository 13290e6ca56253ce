"""However many jobs a hot verb is about, it is one statement: one round trip, one commit."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headrace.clock import StoreClock
from headrace.manager import Completed, JobManager
from headrace.spec import JobSpec
from headrace.stores.postgres import PostgresStore
from headrace.stores.postgres.drivers import Row
from headrace.stores.postgres.session import PoolSession

JOBS = 200


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the statements that went to the server, but for hints."""
    names: list[str] = []
    run = PoolSession._run

    async def note(
        session: PoolSession, name: str, arguments: tuple[object, ...], *, writes: bool
    ) -> Sequence[Row]:
        if name != "notify":
            names.append(name)
        return await run(session, name, arguments, writes=writes)

    monkeypatch.setattr(PoolSession, "_run", note)
    return names


async def test_each_hot_verb_is_one_statement(store: PostgresStore, sent: list[str]) -> None:
    manager = JobManager(store, clock=StoreClock(await store.now()))
    await manager.submit(JobSpec(type="t"))  # the lane is known from now on
    await manager.claim("w")  # and so is the worker

    def trips() -> list[str]:
        went = sent.copy()
        sent.clear()
        return went

    trips()
    await manager.submit_many([JobSpec(type="t", tags=["x"]) for _ in range(JOBS)])
    assert trips() == ["insert"]
    jobs = await manager.claim("w", limit=JOBS)
    assert len(jobs) == JOBS
    assert trips() == ["claim"]
    beats = await manager.heartbeat([job.lease for job in jobs if job.lease is not None])
    assert len(beats.extended) == JOBS
    assert trips() == ["extend"]
    done = await manager.settle(
        [Completed(job_id=job.id, token=job.token, known=job) for job in jobs]
    )
    assert len(done.outcomes) == JOBS
    assert trips() == ["complete"]
