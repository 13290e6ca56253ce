"""Encryption where PostgreSQL has something of its own: a caller's transaction."""

from __future__ import annotations

from headrace import JobManager, JobSpec, KeyRing
from headrace.clock import ManualClock
from headrace.stores.postgres import PostgresStore


async def test_what_is_submitted_in_a_transaction_of_the_callers_is_encrypted(
    store: PostgresStore,
) -> None:
    keys = KeyRing({"k": b"k" * 32}, primary="k")
    manager = JobManager(store, clock=ManualClock(), keys=keys)
    async with store._pool.connection() as connection, connection.transaction():
        inside = manager.on(connection)
        given = (await inside.submit(JobSpec(type="t", id="j", payload="word"))).job
        assert given.payload == "word"
    row = (await store.get(["j"]))["j"]
    assert row.payload_json.startswith(b'{"$sealed":{"v":1,"key":"k","data":"')
    assert (await manager.get("j")).payload == "word"
