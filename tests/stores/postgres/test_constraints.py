"""The database itself refuses rows that break the lifecycle's invariants, whoever writes them."""

from __future__ import annotations

import asyncpg
import pytest

from headrace.stores.postgres import PostgresStore
from tests.stores.postgres.jobs import draft, insert


@pytest.mark.parametrize(
    ("constraint", "assignment"),
    [
        ("jobs_state_check", "state = 'asleep'"),
        ("token_exactly_while_leased", "state = 'running'"),
        ("token_exactly_while_leased", "token = '1.x'"),
        ("lease_only_while_leased", "lease_until = now()"),
        ("finalized_exactly_while_terminal", "state = 'completed'"),
        ("finalized_exactly_while_terminal", "finalized_at = now()"),
        ("failure_has_message_and_category", "failure_message = 'x'"),
        ("failure_has_message_and_category", "failure_code = 'x'"),
        ("jobs_failure_category_check", "failure_message = 'x', failure_category = 'odd'"),
        ("budget_kept", "failures = 2, losses = 2"),
        ("jobs_version_check", "version = 0"),
        ("jobs_attempt_check", "attempt = -1"),
    ],
)
async def test_a_bad_row_is_refused(store: PostgresStore, constraint: str, assignment: str) -> None:
    (job,) = await insert(store, draft(max_attempts=3))
    async with store._pool.connection() as connection:
        with pytest.raises(asyncpg.CheckViolationError) as caught:
            await connection.execute(f"UPDATE {store._sql.quoted_schema}.jobs SET {assignment}")
    assert caught.value.constraint_name == constraint
    assert await store.get([job.id]) == {job.id: job}


@pytest.mark.parametrize("priority", [-1, 5])
async def test_a_priority_out_of_range_is_refused(store: PostgresStore, priority: int) -> None:
    async with store._pool.connection() as connection:
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(
                f"INSERT INTO {store._sql.quoted_schema}.lanes (tenant, queue, type, priority)"
                " VALUES ('t', 'q', 'y', $1)",
                priority,
            )
