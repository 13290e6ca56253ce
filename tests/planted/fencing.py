"""Defects of fencing, of what one tenant can do to another, and of clocks that are set."""

from __future__ import annotations

from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from headrace import lifecycle
from headrace.manager import clock_recovery, presence
from headrace.manager import limits as manager_limits
from headrace.manager.context import Context
from headrace.model import Change, Job
from headrace.stores.base import JobStore, WorkerSeen
from headrace.stores.memory import commit
from tests.planted.defect import Defect, patched

_COMPARED = (
    "id",
    "tenant",
    "queue",
    "type",
    "priority",
    "limit_key",
    "version",
    "state",
    "token",
    "assignee",
    "attempt",
    "failures",
    "losses",
)


def _all_but(*fields: str) -> attrgetter[tuple[object, ...]]:
    return attrgetter(*(field for field in _COMPARED if field not in fields))


def everything_is_due(
    context: Context, job: Job, now: datetime, ahead: timedelta
) -> datetime | None:
    return now if job.run_at > now else None


def backoffs_start_again(
    context: Context, job: Job, now: datetime, ahead: timedelta
) -> datetime | None:
    return None if right_due(context, job, now, ahead) is None else now


def earlier_at_each_look(
    context: Context, job: Job, now: datetime, ahead: timedelta
) -> datetime | None:
    if job.last_failed_at is None or job.last_failed_at <= now or job.run_at <= now:
        return right_due(context, job, now, ahead)
    return max(job.run_at - ahead, now)


async def buckets_stay_ahead(context: Context, now: datetime) -> None: ...


right_due = clock_recovery._due


def leases_are_voided(job: Job, now: datetime, ahead: timedelta) -> datetime | None:
    end = right_end(job, now, ahead)
    return None if end is None else now + timedelta(seconds=1)


right_end = clock_recovery._end


async def nothing_comes_back(context: Context, now: datetime, ahead: timedelta) -> int:
    return 0


def apply_by_the_clock(job: Job, command: Any, now: datetime) -> Change:
    return right_apply(replace(job, updated_at=min(job.updated_at, now)), command, now)


right_apply = lifecycle.apply


async def announced_by_name_alone(store: JobStore, seen: WorkerSeen) -> None:
    await store.announce(seen)


def stale_completion(
    self: lifecycle.Completions, job: Job, token: str, result_json: bytes | None
) -> Change | None:
    """As if the lease of any job still held, and its token were the right one."""
    held = replace(job, token=token, lease_until=None, expires_at=None, timeout_seconds=None)
    change = right_completion(self, held, token, result_json)
    return change and Change(job, change.after, change.event)


right_completion = lifecycle.Completions.of

DEFECTS: dict[str, Defect] = {
    "the usual completion does not look at its lease": patched(
        lifecycle.Completions, "of", stale_completion
    ),
    "a job's own time runs back": patched(lifecycle, "apply", apply_by_the_clock),
    "a worker takes the place of another tenant's": patched(
        presence, "announce", announced_by_name_alone
    ),
    "leases and retries count from a clock that was set back": patched(
        lifecycle, "STEP_SECONDS", 1e9
    ),
    "what was stamped ahead stays there": patched(
        clock_recovery, "_bring_back", nothing_comes_back
    ),
    "what a caller asked for is brought back, too": patched(
        clock_recovery, "_due", everything_is_due
    ),
    "a try that comes back forgets its backoff": patched(
        clock_recovery, "_due", backoffs_start_again
    ),
    "a try comes back by one more step at each look": patched(
        clock_recovery, "_due", earlier_at_each_look
    ),
    "a rate waits for the time that the clock had shown": patched(
        manager_limits, "catch_up", buckets_stay_ahead
    ),
    "a lease that comes back is void": patched(clock_recovery, "_end", leases_are_voided),
    "a commit compares the version alone": patched(
        commit, "_compared", attrgetter("id", "version")
    ),
    "a commit believes what it is told of the tenant": patched(
        commit, "_compared", _all_but("tenant")
    ),
    "a commit believes an invented token": patched(commit, "_compared", _all_but("token")),
    "a commit believes that a job is running": patched(commit, "_compared", _all_but("state")),
    "a commit believes what it is told of the budget": patched(
        commit, "_compared", _all_but("failures", "losses")
    ),
}
