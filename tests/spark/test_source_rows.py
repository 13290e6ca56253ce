"""What the readers handle to Spark: every column of every table, predicates, slices. Without Spark itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from headrace import JobManager, JobSpec
from headrace.clock import ManualClock
from headrace.model import LEASED, State
from headrace.policy import CancelMode
from headrace.spark.schemas import JOBS, TABLES
from headrace.stores.base import JobStore
from tests.spark import oracle
from tests.spark.sources import (
    NAME,
    ODD,
    SECRET,
    Row,
    add_jobs,
    by_seq,
    event_rows,
    events_of,
    fill,
    job_rows,
    on_store,
    read,
    read_slices,
)
from tests.spark.wild import START
from tests.stores.postgres.server import Schemas, with_options

KEY_OF = {"jobs": "seq", "events": "seq", "attempts": "leased_seq"}
STATE_OF = {"jobs": "state", "events": "after", "attempts": "state_after"}


@pytest.fixture
def postgres_url(postgres_schemas: Schemas) -> Iterator[str]:
    url = postgres_schemas.take()
    yield url
    asyncio.run(postgres_schemas.give_back(url))


def told_rows(url: str, table: str) -> list[Row]:
    """What the verbs say."""
    match table:
        case "jobs":
            return job_rows(url)
        case "events":
            return event_rows(url)
        case _:
            return oracle.attempts(events_of(url))


def test_jobs_are_what_the_verbs_say_in_every_column(durable_url: str) -> None:
    fill(durable_url)
    expected = job_rows(durable_url)
    assert by_seq(read(durable_url, "jobs")) == expected
    # Otherwise the equality would show little.
    always = {"seq", "id", "tenant", "queue", "type", "priority", "tags", "payload", "state"}
    always |= {"version", "attempt", "failures", "losses", "depth"}
    always |= {"created_at", "run_at", "updated_at", "timeout_seconds"}
    for name in JOBS.names:
        values = [row[name] for row in expected]
        assert any(value is not None for value in values), f"{name} never has a value"
        assert name in always or None in values, f"{name} is never NULL"


def test_encrypted_contents_stay_encrypted_and_tokens_stay_hidden(durable_url: str) -> None:
    fill(durable_url, steps=10)
    rows = read(durable_url, "jobs")
    assert SECRET not in str(rows)
    assert ODD in {row["message"] for row in rows}
    sealed = [row for row in rows if row["payload"].startswith('{"$sealed"')]
    assert len(sealed) == 6  # four, the one that was redriven, and a child
    assert any((row["result"] or "").startswith('{"$sealed"') for row in sealed)
    assert any((row["message"] or "").startswith("sealed:v1:k1:") for row in sealed)
    assert all("token" not in row for row in rows)


@pytest.mark.parametrize("table", TABLES)
def test_more_slices_lose_and_repeat_nothing(durable_url: str, table: str) -> None:
    fill(durable_url)
    expected = told_rows(durable_url, table)
    by = KEY_OF[table]
    assert by_seq(read(durable_url, table, partitions=1), by) == expected
    each: tuple[dict[str, Any], ...] = ({"partitions": 5}, {"rowsPerPartition": 25})
    for options in each:
        slices = read_slices(durable_url, table, **options)
        assert by_seq([row for piece in slices for row in piece], by) == expected
        if table != "attempts" or not durable_url.startswith("redis"):
            assert len(slices) == options.get("partitions", len(slices))
            assert sum(bool(piece) for piece in slices) >= (4 if "partitions" in options else 2)


@pytest.mark.parametrize("table", TABLES)
def test_predicates_choose_rows(durable_url: str, table: str) -> None:
    fill(durable_url)
    rows = told_rows(durable_url, table)
    moment = {"jobs": "created_at", "events": "at", "attempts": "leased_at"}[table]
    times = sorted(row[moment] for row in rows)
    since, until = times[len(times) // 4], times[3 * len(times) // 4]
    states = ("dead", "completed", "retrying", "cancelled", "lost")
    options: dict[str, Any] = {
        "tenant": "acme, odd",
        "queue": '["slow", "odd", "default"]',
        "type": '["größe","odd/ü","mail"]',
        "state": ",".join(states),
        "since": since.isoformat(),
        "until": until.isoformat(),
    }
    expected = [
        row
        for row in rows
        if row["tenant"] in ("acme", "odd")
        and row["type"] in ("größe", "odd/ü", "mail")
        and since <= row[moment] < until
        and row[STATE_OF[table]] in states
    ]
    assert 0 < len(expected) < len(rows) / 2
    chosen = read(durable_url, table, **options, partitions=2)
    assert by_seq(chosen, KEY_OF[table]) == expected
    # Also on columns that are not read.
    by = KEY_OF[table]
    chosen = read(durable_url, table, columns=by, **options)
    assert by_seq(chosen, by) == [{by: row[by]} for row in expected]


@pytest.mark.parametrize("table", TABLES)
def test_every_state_chooses_its_rows(durable_url: str, table: str) -> None:
    fill(durable_url)
    by, rows = KEY_OF[table], told_rows(durable_url, table)
    found: list[Row] = []
    for state in State:
        # An attempt that has no state yet still runs.
        expected = [row for row in rows if (row[STATE_OF[table]] or State.RUNNING) == state]
        chosen = by_seq(read(durable_url, table, state=state, partitions=2), by)
        assert chosen == expected, state
        found += chosen
    assert by_seq(found, by) == rows
    # Otherwise the equalities would show little.
    assert len({row[STATE_OF[table]] for row in rows}) >= 6
    assert read(durable_url, table, state="[]") == []


def test_an_attempt_that_runs_is_running_until_it_has_left_its_job(durable_url: str) -> None:
    """Also while its job is being cancelled. What left the lease has another state than a leased one."""

    async def act(store: JobStore) -> None:
        manager = JobManager(store, clock=ManualClock(START))
        await manager.submit_many([JobSpec(type="t", id=name) for name in ("a", "b", "c")])
        held = {job.id: job for job in await manager.claim("w", limit=3)}
        await manager.complete("a", held["a"].token)
        await manager.cancel(["b"], mode=CancelMode.COOPERATIVE)

    on_store(durable_url, act)
    assert {row["id"] for row in read(durable_url, "jobs", state="cancelling")} == {"b"}

    def attempts(*states: str) -> set[str]:
        return {row["job_id"] for row in read(durable_url, "attempts", state=",".join(states))}

    assert attempts("running") == {"b", "c"}
    assert attempts("completed") == {"a"}
    assert attempts("completed", "running") == {"a", "b", "c"}
    assert attempts(*(state for state in State if state not in LEASED)) == {"a"}
    assert attempts("cancelling") == set()


def test_values_of_predicates_are_never_taken_for_anything_else(durable_url: str) -> None:
    add_jobs(durable_url, 3, tenant="o'Neil")
    add_jobs(durable_url, 2, tenant=NAME)
    assert len(read(durable_url, "jobs", tenant="o'Neil")) == 3
    assert len(read(durable_url, "jobs", tenant=NAME)) == 2
    assert len(read(durable_url, "events", tenant="o'Neil," + NAME)) == 5
    assert read(durable_url, "jobs", tenant="$1,?,%s,' OR 1=1 --") == []
    assert read(durable_url, "jobs", tenant="[]") == []


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("events", "kind seq at"),
        ("events", "cursor seq"),
        ("jobs", "tags seq payload"),
        ("attempts", "outcome leased_seq"),
    ],
)
def test_only_the_columns_that_are_asked_for_are_read(
    durable_url: str, table: str, columns: str
) -> None:
    fill(durable_url, steps=60)
    expected = [
        {name: row[name] for name in columns.split()} for row in told_rows(durable_url, table)
    ]
    assert by_seq(read(durable_url, table, columns=columns), KEY_OF[table]) == expected


def test_since_includes_and_until_does_not(durable_url: str) -> None:
    add_jobs(durable_url, 2)
    (at,) = {row["at"] for row in event_rows(durable_url)}
    later = (at + timedelta(microseconds=1)).isoformat()
    assert len(read(durable_url, "events", since=at.isoformat())) == 2
    assert len(read(durable_url, "events", since=later)) == 0
    assert len(read(durable_url, "events", until=later)) == 2
    assert len(read(durable_url, "events", until=at.isoformat())) == 0


# --- PostgreSQL ----------------------------------------------------------------------------------


def test_nothing_is_read_above_a_transaction_that_still_runs(
    postgres_schemas: Schemas, postgres_url: str
) -> None:
    """What it commits late would come before them; the bound that a read has fixed stays."""
    add_jobs(postgres_url, 5)

    async def held() -> tuple[int, int, int]:
        holder = await asyncpg.connect(postgres_schemas.url)
        try:
            await holder.execute("BEGIN")
            await holder.execute("SELECT pg_current_xact_id()")
            await asyncio.to_thread(add_jobs, postgres_url, 7)
            counts = [
                len(await asyncio.to_thread(read, postgres_url, table, partitions=3))
                for table in ("events", "attempts", "jobs")
            ]
        finally:
            await holder.close()
        return counts[0], counts[1], counts[2]

    assert asyncio.run(held()) == (5, 0, 12)
    assert len(read(postgres_url, "events", partitions=3)) == 12


def test_one_huge_transaction_is_cut_up(postgres_url: str) -> None:
    add_jobs(postgres_url, 3)
    add_jobs(postgres_url, 8_000)
    add_jobs(postgres_url, 5)
    sizes = [len(piece) for piece in read_slices(postgres_url, "events", partitions=4)]
    assert sum(sizes) == 8_008
    assert len(sizes) == 4
    assert max(sizes) <= 2_100
    by_rows = [len(piece) for piece in read_slices(postgres_url, "events", rowsPerPartition=1_000)]
    assert sum(by_rows) == 8_008
    assert len(by_rows) == 9
    assert max(by_rows) <= 1_000


def test_settings_in_the_url_reach_the_server(postgres_url: str) -> None:
    """The store takes options that it does not know for settings of the server; so must the reader."""
    add_jobs(postgres_url, 2)
    url = with_options(postgres_url, application_name="a b", work_mem="8MB", pool_size="3")
    assert len(read(url, "jobs")) == 2
