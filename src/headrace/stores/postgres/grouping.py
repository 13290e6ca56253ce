"""What rows of a bulk load have in common, as the manager has drafted it: one job for each group."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from headrace import history
from headrace.model import Job
from headrace.stores.postgres.values import us_or_none


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
    details = history.details_of(replace(job, key=""), ())
    members = [
        b"%b:%b" % (msgspec.json.encode(name), msgspec.json.encode(value))
        for name, value in details.items()
    ]
    place = list(details).index("key")
    before = b"".join(member + b"," for member in members[:place])
    after = b"".join(b"," + member for member in members[place + 1 :])
    return b'{%b"key":' % before, after + b"}"
