"""The schema refuses what the lifecycle forbids, so that no bug above it can store it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from headrace.stores.sqlite import SqliteStore
from tests.stores.sqlite.samples import complete, insert, new_job, request


@pytest.fixture
async def jobs(path: Path, store: SqliteStore) -> dict[str, str]:
    """A job in each kind of state, by name."""
    for name in ("ended", "leased", "waiting"):
        await insert(store, new_job(id=name))
        if name != "waiting":
            claimed = await store.claim(request())
            if name == "ended":
                await complete(store, claimed)
    return {"waiting": "pending", "leased": "running", "ended": "completed"}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("waiting", "state = 'ready'"),
        ("waiting", "state = 'running'"),
        ("waiting", "state = 'completed'"),
        ("waiting", "token = 't'"),
        ("waiting", "lease_until = 1"),
        ("waiting", "finalized_at = 1"),
        ("waiting", "version = 0"),
        ("waiting", "attempt = -1"),
        ("waiting", "failures = -1"),
        ("waiting", "losses = -1"),
        ("waiting", "failures = 4"),
        ("waiting", "failures = 2, losses = 2"),
        ("waiting", "depth = -1"),
        ("waiting", "run_at = NULL"),
        ("waiting", "run_at = 'tomorrow'"),
        ("waiting", "failure_message = 'alone'"),
        ("waiting", "failure_category = 'temporary'"),
        ("waiting", "failure_code = 'E1'"),
        ("waiting", "failure_message = 'm', failure_category = 'odd'"),
        ("leased", "token = NULL"),
        ("leased", "token = NULL, lease_until = NULL"),
        ("leased", "state = 'pending'"),
        ("leased", "state = 'completed'"),
        ("leased", "finalized_at = 1"),
        ("ended", "finalized_at = NULL"),
        ("ended", "state = 'pending'"),
        ("ended", "state = 'cancelling'"),
        ("ended", "token = 't'"),
        ("ended", "lease_until = 1"),
        ("ended", "id = 'waiting'"),
    ],
)
def test_a_job(path: Path, jobs: dict[str, str], name: str, change: str) -> None:
    refused(path, f"UPDATE jobs SET {change} WHERE id = '{name}'")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lanes SET pending = -1",
        "UPDATE lanes SET dead_failures = -1",
        "UPDATE lanes SET priority = 5",
        "INSERT INTO lanes (tenant, queue, type, priority) VALUES ('default', 'default', 'mail', 2)",
        """INSERT INTO lanes (tenant, queue, type, priority, limit_key)
           SELECT tenant, queue, type, priority, 'k' FROM lanes, (VALUES (1), (2))""",
        "INSERT INTO records VALUES ('gate', 'mail', 0, x'6e756c6c')",
        "INSERT INTO edges (parent_id, child_id, kind, seen) VALUES ('a', 'b', 'before', 0)",
        "INSERT INTO edges VALUES (1, 'a', 'b', 'after', 'pending', 0)",
        "INSERT INTO edges (parent_id, child_id, kind, seen) VALUES ('a', 'b', 'after', 2)",
        "INSERT INTO payloads (seq, payload) VALUES (9, 'text')",
    ],
)
def test_other_tables(path: Path, jobs: dict[str, str], statement: str) -> None:
    refused(path, statement)


def test_lawful_rows_are_stored(path: Path, jobs: dict[str, str]) -> None:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT id, state FROM jobs").fetchall()
        assert dict(found) == jobs
        connection.execute(
            "UPDATE jobs SET state = 'retrying', failures = 2, losses = 1 WHERE seq = 3"
        )


def refused(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.IntegrityError):
        assert connection.execute(statement).rowcount > 0
