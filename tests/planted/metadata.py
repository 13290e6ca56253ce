"""Defects in keys that are held for a time, and in changing what a user says of a job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from headrace import completion, history, lifecycle, spec
from headrace.contracts.job_model import RetryConfig, request
from headrace.manager import submission, updates
from headrace.manager.context import Context
from headrace.manager.placement import KeyRule
from headrace.model import Change, Job, State
from headrace.policy import Policy
from headrace.retry import Custom, StoredBackoff
from headrace.spec import JobSpec
from headrace.stores.memory import MemoryStore, lanes, update
from headrace.stores.memory.jobs import Jobs
from headrace.testing.conformance.job_model import backoffs
from tests.planted.defect import Defect, patched


def hold_ignored(one: JobSpec, policy: Policy) -> KeyRule:
    return KeyRule(policy.key_window_seconds, policy.key_released_when_terminal)


def hold_ends_with_the_job(one: JobSpec, policy: Policy) -> KeyRule:
    seconds = spec.key_hold_seconds(one) or policy.key_window_seconds
    return KeyRule(seconds, policy.key_released_when_terminal)


async def version_not_compared(self: MemoryStore, changes: Sequence[Change]) -> Sequence[bool]:
    now = await self.get([change.before.id for change in changes])
    return await right_update(
        self, [replace(one, before=now.get(one.before.id, one.before)) for one in changes]
    )


right_update = MemoryStore.update


def entries_live_in_any_lane(self: lanes.Lanes, entry: lanes.Entry) -> bool:
    job = self._jobs.get(entry.job_id)
    return (
        job is not None
        and job.state in (State.PENDING, State.RETRYING, State.LOST)
        and (job.run_at, job.seq) == (entry.run_at, entry.seq)
    )


def tags_not_indexed(self: Jobs, job: Job) -> None:
    self.move(job)


def whole_row_written(stored: Job, after: Job) -> Job:
    return after


def counts_as_a_change_of_state(
    job: Job, command: Any, target: State, now: datetime, at: datetime
) -> dict[str, Any]:
    fields = right_effects(job, command, target, now, at)
    return fields | {"updated_at": now} if isinstance(command, lifecycle.Update) else fields


right_effects = lifecycle._effects_of_verb


async def nobody_is_lifted(context: Context, job: Job) -> None:
    return None


async def parents_ignored(context: Context, job: Job, priority: int) -> int:
    return priority


async def no_webhook(context: Context, after: Job) -> None:
    return None


def says_nothing_of_before(before: Job, after: Job) -> bytes:
    return right_update_of(after, after)


right_update_of = history.update_of


def custom_stays_at_home(config: RetryConfig | None, policy: Policy) -> StoredBackoff | None:
    if config is None or isinstance(config.backoff, Custom):
        return None
    return config.backoff


DEFECTS: dict[str, Defect] = {
    "the time to hold a key is ignored": patched(submission, "_key_rule", hold_ignored),
    "a key held for a time is given up with its job": patched(
        submission, "_key_rule", hold_ends_with_the_job
    ),
    "an update is written whatever the version": patched(
        MemoryStore, "update", version_not_compared
    ),
    "a job stays in the line of its old priority, too": patched(
        lanes.Lanes, "_is_live", entries_live_in_any_lane
    ),
    "new tags do not find a job": patched(Jobs, "update", tags_not_indexed),
    "an update undoes heartbeats and notes": patched(update, "updated", whole_row_written),
    "an update counts as a change of state": patched(
        lifecycle, "_effects_of_verb", counts_as_a_change_of_state
    ),
    "a raised priority stays with its job": patched(updates, "lift_dependents", nobody_is_lifted),
    "a job may be less urgent than what it depends on": patched(
        updates, "_at_least_as_its_parents", parents_ignored
    ),
    "a callback url that comes later is not told": patched(updates, "_bring_webhook", no_webhook),
    "an update says nothing of what was": patched(history, "update_of", says_nothing_of_before),
    "an update takes away what ties a job to its batch": patched(
        completion, "is_tie", lambda tag: False
    ),
}

WITHIN_A_PART = {
    "a custom backoff stays in the process that submitted": (
        "job_model",
        f"{backoffs.PART}: Custom",
        patched(request, "_backoff", custom_stays_at_home),
    ),
}
