"""What the store leaves behind: nothing that grows with jobs that are gone, except the event log."""

from __future__ import annotations

from headrace.clock import ManualClock
from headrace.manager import JobManager
from headrace.spec import JobSpec
from headrace.stores.redis import RedisStore

# The log, where the histories of deleted jobs start in it, the last number given of each sequence, and lanes.
STAYS = {"events", "gone", "lane_ids", "lanes", "sequences", "schema", "workers"}


async def _names(store: RedisStore) -> set[str]:
    root = store._server.keys.root
    names: set[str] = set()
    cursor = b"0"
    while True:
        cursor, page = await store._server.read("SCAN", cursor, "COUNT", 1000)
        names |= {
            key.decode().removeprefix(f"{root}:") for key in page if key.startswith(root.encode())
        }
        if cursor == b"0":
            return names


async def test_deleting_every_job_leaves_no_index_behind(store: RedisStore) -> None:
    manager = JobManager(store, clock=ManualClock())
    parent = (await manager.submit(JobSpec(type="a", tags=["x"], key="k0"))).job
    await manager.submit_many(
        [
            JobSpec(type="b", id=f"c{n}", after=[parent.id], tags=["x", f"t{n}"], key=f"k{n + 1}")
            for n in range(5)
        ]
    )
    await manager.submit(JobSpec(type="c", queue="other", delay_seconds=60, priority=0))
    assert {"edges", f"from:{parent.id}", "line:1:p", "tagged:x", "expiry"} <= await _names(store)
    for _ in range(2):
        for job in await manager.claim("w", limit=100):
            assert job.token is not None
            await manager.progress(job.id, job.token, 0.5, "half")
            await manager.checkpoint(job.id, job.token, {"at": 1})
            await manager.spawn(job.id, job.token, [JobSpec(type="d", delay_seconds=60)])
            await manager.complete(job.id, job.token, {"done": True})
    manager.clock.advance(3600)  # type: ignore[attr-defined]  # it is a manual one
    assert any(name.startswith("spawned:") for name in await _names(store))
    for job in await manager.claim("w", limit=100):
        await manager.fail(job.id, job.token, "broken", retry_after=1)
        await manager.cancel([job.id])
    await manager.delete([job.id for job in (await manager.find(limit=100)).jobs])
    assert await _names(store) == STAYS


async def test_a_job_id_used_again_goes_on_with_its_history(store: RedisStore) -> None:
    manager = JobManager(store, clock=ManualClock())
    for _ in range(2):
        await manager.submit(JobSpec(type="a", id="same"))
        await manager.cancel(["same"])
        await manager.delete(["same"])
    events = await manager.events(job_id="same")
    assert [event.kind for event in events] == ["enqueued", "cancelled"] * 2
    assert [event.seq for event in events] == [1, 2, 3, 4]
    assert await manager.events(job_id="same", after=events[1].cursor, limit=1) == (events[2],)
