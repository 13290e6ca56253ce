"""The ways of one new job into PostgreSQL store the same: alone, as arrays, by COPY."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from headrace import lifecycle
from headrace.model import Job
from headrace.stores.base import Clash, EventQuery
from headrace.stores.columns import JOB
from headrace.stores.postgres import PostgresStore, insert
from headrace.stores.postgres.columns import INPUTS, NEVER_AT_BIRTH
from tests.stores.postgres.jobs import NOW, draft, insertion
from tests.stores.postgres.jobs import insert as put

EVERYTHING: dict[str, Any] = {
    "previous_id": "before",
    "parent_id": "who spawned it",
    "correlation_id": "größe",
    "callback_url": "https://example.org/",
    "depth": 3,
    "max_attempts": 7,
    "lease_seconds": 0.1234567,
    "timeout_seconds": 3.3333335,
    "backoff_json": b'{"type":"none"}',
    "payload_json": b'{"n":"' + b"x" * 5000 + b'"}',
    "limit_key": "k",
    "priority": 0,
    "run_at": NOW + timedelta(microseconds=1),
    "key": "a key that another holds",
}
NOTHING: dict[str, Any] = {
    "max_attempts": None,
    "lease_seconds": None,
    "expires_at": None,
    "payload_json": b"1",
}


def _jobs() -> list[Job]:
    return [
        draft(id=f"{name}-{number}", **fields)
        for number in range(2)
        for name, fields in {"usual": {}, "everything": EVERYTHING, "nothing": NOTHING}.items()
    ]


def test_the_jobs_give_every_input_a_value() -> None:
    """A column that is added to jobs needs one here."""
    given = {
        *EVERYTHING,
        "id",
        "tenant",
        "queue",
        "type",
        "created_at",
        "updated_at",
        "state",
        "version",
    }
    counts = {"attempt", "failures", "losses"}  # nothing has happened yet
    fields = {one.field for one in INPUTS if one.field and one.name not in NEVER_AT_BIRTH}
    assert fields <= given | counts | {"expires_at", "tags"}, "tags go with more than one row"
    assert {one.field for one in JOB} >= fields


@pytest.fixture(params=["alone", "as arrays", "by COPY"])
async def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name = str(request.param)
    monkeypatch.setattr(insert, "COPIED_MIN", 2 if name == "by COPY" else 10**9)
    if name == "as arrays":
        monkeypatch.setattr(insert, "are_plain", lambda _: False)
    return name


async def _put(store: PostgresStore, way: str, jobs: list[Job]) -> list[Job]:
    if way == "alone":
        return [stored for job in jobs for stored in await put(store, job)]
    return list(await put(store, *jobs))


async def test_every_way_stores_what_the_lifecycle_says(store: PostgresStore, way: str) -> None:
    born = [lifecycle.submit(job) for job in _jobs()]
    stored = await _put(store, way, [job for job, _ in born])
    assert stored == [replace(job, seq=one.seq) for (job, _), one in zip(born, stored, strict=True)]
    assert [one.seq for one in stored] == sorted({one.seq for one in stored})
    assert await store.get([one.id for one in stored]) == {one.id: one for one in stored}
    events = await store.events(EventQuery())
    assert [replace(event, seq=0, cursor="") for event in events] == [event for _, event in born]


async def test_every_way_stores_all_or_says_what_was_there(store: PostgresStore, way: str) -> None:
    first, *others = _jobs()
    await put(store, first)
    before = await store.events(EventQuery())
    wanted = [first] if way == "alone" else [*others, first]
    assert await store.insert(insertion(wanted)) == Clash(ids=[first.id])
    assert await store.events(EventQuery()) == before
    assert await store.get([job.id for job in others]) == {}


@pytest.mark.parametrize("late", [False, True])
async def test_every_way_knows_which_jobs_are_early(
    store: PostgresStore, way: str, *, late: bool
) -> None:
    """Those that become claimable with a due time in the past: see pick_jobs."""
    now = await store.now()
    due = now - timedelta(seconds=30) if late else now + timedelta(seconds=1)
    jobs = [draft(created_at=now, updated_at=now, run_at=due, expires_at=None) for _ in range(3)]
    await _put(store, way, jobs)
    async with store._pool.connection() as connection:
        rows = await connection.fetch(f"SELECT early FROM {store._sql.quoted_schema}.jobs")
    assert [early for (early,) in rows] == [late] * 3
