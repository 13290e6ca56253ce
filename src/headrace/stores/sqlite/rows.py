"""Jobs as rows: positional both ways, since this is where a store spends its Python time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from headrace.clock import from_us, to_us
from headrace.model import Category, Failure, Job, State
from headrace.stores.sqlite.lanes import Lanes
from headrace.stores.sqlite.snapshot import Snapshot
from headrace.stores.sqlite.sql import json_list, query

_JOBS_BY_SEQ = query("job_rows")
_SEQS_OF_IDS = query("seqs_of_ids")

STATE_OF = {str(state): state for state in State}
"""Looking a state up is ten times faster than calling the enumeration."""

CATEGORY_OF = {str(category): category for category in Category}

_NO_TAGS = "[]"
_TAGS_DECODER = msgspec.json.Decoder(tuple[str, ...])


def us_or_none(moment: datetime | None) -> int | None:
    return None if moment is None else to_us(moment)


read_time = lru_cache(maxsize=4096)(from_us)
"""Times come in groups: a job's first three are one, and a batch is claimed at one."""


def time_or_none(us: int | None) -> datetime | None:
    return None if us is None else read_time(us)


def read_list(text: str) -> tuple[str, ...]:
    return () if text == _NO_TAGS else _TAGS_DECODER.decode(text)


def tags_text(tags: tuple[str, ...]) -> str:
    return json_list(tags) if tags else _NO_TAGS


def jobs_by_seq(view: Snapshot, seqs: Sequence[int]) -> list[Job]:
    """The jobs with these seqs, in this order; those that are gone are left out."""
    lanes = view.lanes
    rows = view.connection.execute(_JOBS_BY_SEQ, (json_list(seqs),)).fetchall()
    lanes.learn(row[2] for row in rows)
    by_seq = {row[0]: row for row in rows}
    return [read_job(by_seq[seq], lanes) for seq in seqs if seq in by_seq]


def seqs_of_ids(view: Snapshot, ids: Sequence[str]) -> list[int]:
    """The seqs of those ids that are stored, each once."""
    return view.numbers(_SEQS_OF_IDS, (json_list(dict.fromkeys(ids)),))


def read_job(row: Sequence[Any], lanes: Lanes) -> Job:
    """A row of `job_rows.sql`."""
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
        tags=read_list(tags),
        payload_json=payload,
        priority=priority,
        created_at=read_time(created_at),
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
        expires_at=time_or_none(expires_at),
        backoff_json=backoff,
        state=STATE_OF[state],
        version=version,
        run_at=read_time(run_at),
        updated_at=read_time(updated_at),
        attempt=attempt,
        failures=failures,
        losses=losses,
        token=token,
        lease_until=time_or_none(lease_until),
        assignee=assignee,
        assigned_at=time_or_none(assigned_at),
        scheduled_at=time_or_none(scheduled_at),
        started_at=time_or_none(started_at),
        last_failed_at=time_or_none(last_failed_at),
        finalized_at=time_or_none(finalized_at),
        failure=None
        if failure_message is None
        else Failure(failure_message, CATEGORY_OF[failure_category], failure_code),
        result_json=result,
        progress=progress,
        progress_note=progress_note,
        checkpoint_json=checkpoint,
        log_json=log,
    )


def insert_parameters(job: Job, lane: int) -> tuple[Any, ...]:
    """For `job_add.sql`; the job has its seq."""
    return (
        job.seq,
        job.id,
        lane,
        *_standing(job, us_or_none(job.lease_until)),
        tags_text(job.tags),
        to_us(job.created_at),
        job.key,
        job.previous_id,
        job.parent_id,
        job.correlation_id,
        job.callback_url,
        job.depth,
        job.max_attempts,
        job.lease_seconds,
        job.timeout_seconds,
        us_or_none(job.expires_at),
        job.backoff_json,
    )


def change_parameters(job: Job, seq: int, lease_until_us: int | None) -> tuple[Any, ...]:
    """For `job_change.sql`."""
    return (*_standing(job, lease_until_us), seq)


def _standing(job: Job, lease_until_us: int | None) -> tuple[Any, ...]:
    """The fields that changes write.

    Enumerations go in as plain text: SQLite's module takes a slow path for anything else.
    """
    failure = job.failure
    return (
        str(job.state),
        job.version,
        to_us(job.run_at),
        to_us(job.updated_at),
        job.attempt,
        job.failures,
        job.losses,
        job.token,
        lease_until_us,
        job.assignee,
        us_or_none(job.assigned_at),
        us_or_none(job.scheduled_at),
        us_or_none(job.started_at),
        us_or_none(job.last_failed_at),
        us_or_none(job.finalized_at),
        None if failure is None else failure.message,
        None if failure is None else str(failure.category),
        None if failure is None else failure.code,
    )
