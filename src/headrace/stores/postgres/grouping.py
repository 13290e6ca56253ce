"""What rows of a bulk load have in common, as the manager has drafted it: one job for each group."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from headrace import history
from headrace.model import Job
from headrace.stores.postgres.values import us_or_none

_SOME_KEY = "0c9e7f1a5d2b4a66"


class Group(msgspec.Struct, frozen=True):
    """What rows have in common: a job that stands for all of them, its lane, and how long keys hold."""

    job: Job
    """Its times count from its birth, which is when the rows are stored."""
    lane: int
    key_seconds: float | None
    """None: without end."""
    key_released: bool

    def born(self, now: datetime) -> Job:
        lifetime = (
            None if self.job.expires_at is None else self.job.expires_at - self.job.created_at
        )
        return replace(
            self.job, created_at=now, expires_at=None if lifetime is None else now + lifetime
        )


def detail_of(job: Job) -> bytes:
    """The detail of the event of a row without a key."""
    detail = history.detail_of(replace(job, key=None), ())
    assert detail is not None
    return detail


def row_of(number: int, group: Group, now: datetime) -> dict[str, Any]:
    """The group in the table load_groups."""
    job = group.born(now)
    head, tail = _around_key(job)
    held = None if group.key_seconds is None else now + timedelta(seconds=group.key_seconds)
    return {
        "group_number": number,
        "lane": group.lane,
        "tags": list(job.tags),
        "created_at": job.created_at,
        "max_attempts": job.max_attempts,
        "lease_seconds": job.lease_seconds,
        "lease_us": us_or_none(job.lease_seconds),
        "timeout_seconds": job.timeout_seconds,
        "expires_at": job.expires_at,
        "detail": detail_of(job),
        "keyed_head": head,
        "keyed_tail": tail,
        "key_expires_at": held,
        "key_released": group.key_released,
    }


def _around_key(job: Job) -> tuple[bytes, bytes]:
    """The detail of an event of this job with a key: what stands before the key, and after it."""
    written = history.detail_of(replace(job, key=_SOME_KEY), ())
    head, _, tail = written.partition(f'"key":"{_SOME_KEY}"'.encode())
    return head + b'"key":', tail
