"""Jobs as rows, by position: this is where a store spends its Python time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.model import Category, Failure, Job, State
from headrace.stores.postgres.drivers import Row
from headrace.stores.postgres.lanes import Lanes

STATE_OF = {str(state): state for state in State}
"""Looking a state up is ten times faster than calling the enumeration."""

CATEGORY_OF = {str(category): category for category in Category}

LANE = 2
"""The position of the lane in a row of `job_rows`."""


async def read_jobs(rows: Sequence[Row], lanes: Lanes) -> list[Job]:
    """Rows of `job_rows`, in order."""
    await lanes.know({row[LANE] for row in rows})
    return [read_job(row, lanes) for row in rows]


def read_job(row: Sequence[Any], lanes: Lanes) -> Job:
    """One row of `job_rows`, whose lane is known."""
    (
        seq,
        id_,
        lane,
        state,
        version,
        run_at,
        updated_at,
        attempt,
        failures,
        losses,
        token,
        lease_until,
        assignee,
        assigned_at,
        scheduled_at,
        started_at,
        last_failed_at,
        finalized_at,
        failure_message,
        failure_category,
        failure_code,
        tags,
        created_at,
        key,
        previous_id,
        parent_id,
        correlation_id,
        callback_url,
        depth,
        max_attempts,
        lease_seconds,
        timeout_seconds,
        expires_at,
        backoff,
        payload,
        result,
        progress,
        progress_note,
        checkpoint,
        log,
    ) = row
    tenant, queue, type_, priority, limit_key = lanes.key(lane)
    return Job(
        id=id_,
        tenant=tenant,
        queue=queue,
        type=type_,
        tags=tuple(tags),
        payload_json=payload,
        priority=priority,
        created_at=created_at,
        key=key,
        previous_id=previous_id,
        parent_id=parent_id,
        correlation_id=correlation_id,
        callback_url=callback_url,
        limit_key=limit_key,
        depth=depth,
        seq=seq,
        max_attempts=max_attempts,
        lease_seconds=lease_seconds,
        timeout_seconds=timeout_seconds,
        expires_at=expires_at,
        backoff_json=backoff,
        state=STATE_OF[state],
        version=version,
        run_at=run_at,
        updated_at=updated_at,
        attempt=attempt,
        failures=failures,
        losses=losses,
        token=token,
        lease_until=lease_until,
        assignee=assignee,
        assigned_at=assigned_at,
        scheduled_at=scheduled_at,
        started_at=started_at,
        last_failed_at=last_failed_at,
        finalized_at=finalized_at,
        failure=None
        if failure_message is None
        else Failure(failure_message, CATEGORY_OF[failure_category], failure_code),
        result_json=result,
        progress=progress,
        progress_note=progress_note,
        checkpoint_json=checkpoint,
        log_json=log,
    )
