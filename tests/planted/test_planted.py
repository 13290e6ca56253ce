"""Deliberate defects: the kit must catch every one of them.

A suite that passes proves little until it is shown that it can fail. Each defect below replaces one piece of
Headrace by a wrong one and runs the kit on the memory store until a case objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from headrace import graph, lifecycle
from headrace.errors import StaleToken
from headrace.manager import changes, recovery, submission
from headrace.manager.context import Context
from headrace.model import Edge, Event, Job, State
from headrace.retry import Exponential
from headrace.stores.base import ClaimRequest, Commit, Committed, KeyScope, Pause
from headrace.stores.columns import LaneKey
from headrace.stores.memory import MemoryStore, commit, lanes, leases
from headrace.stores.memory.graph import Edges
from headrace.stores.memory.keys import Keys
from headrace.stores.memory.log import Log
from headrace.testing.conformance import Case, load
from tests.planted import (
    completion,
    contracts,
    encryption,
    failures,
    fencing,
    limits,
    metadata,
    operators,
    pace,
    questions,
    schedules,
    shares,
    slots,
    worker,
)
from tests.planted import graph as graph_races
from tests.planted.defect import Defect, patched

# --- the wrong pieces ----------------------------------------------------------------------------


def no_token_check(job: Job, token: str, now: datetime) -> None:
    return None


def token_before_terminal(job: Job, token: str, now: datetime) -> None:
    if job.token != token:
        raise StaleToken("wrong order", job_id=job.id)


right_check = lifecycle.check_lease


def lease_never_expires(job: Job, token: str, now: datetime) -> None:
    right_check(replace(job, lease_until=None), token, now)


def losses_are_free(job: Job, *, known: bool = False) -> bool:
    return job.max_attempts is not None and job.failures + 1 >= job.max_attempts


right_effects = lifecycle._effects_of_verb


def snooze_costs(
    job: Job, command: Any, target: State, now: datetime, at: datetime
) -> dict[str, Any]:
    fields = right_effects(job, command, target, now, at)
    return (
        fields | {"failures": job.failures + 1} if isinstance(command, lifecycle.Snooze) else fields
    )


def loss_moves_run_at(
    job: Job, command: Any, target: State, now: datetime, at: datetime
) -> dict[str, Any]:
    fields = right_effects(job, command, target, now, at)
    return fields | {"run_at": now} if isinstance(command, lifecycle.Expire) else fields


def retry_at_ignored(failures: int, command: lifecycle.Fail, now: datetime) -> datetime:
    return now


def retry_past_budget(rule: Any, job: Job, command: Any, now: datetime) -> bool:
    if rule.when is lifecycle.When.RETRY:
        return bool(command.retry)
    return right_holds(rule, job, command, now)


right_holds = lifecycle._holds


def freed_from_lost(found: Sequence[Any]) -> dict[str, int]:
    return {change.before.assignee: 1 for change in found if change.before.assignee}


async def no_ripple(context: Context, touched: Sequence[Edge]) -> int:
    return 0


async def no_sweep(context: Context, limit: int) -> int:
    return 0


def any_means_all(join: graph.Join) -> graph.Verdict:
    wrong = replace(join, needs_open=join.needs_open or join.any_open, any_open=False)
    return right_judge(wrong)


right_judge = graph.judge


def nothing_falls(join: graph.Join) -> graph.Verdict:
    return right_judge(replace(join, needs_broken=None))


def key_without_tenant(job: Job) -> KeyScope:
    return KeyScope("", job.queue, job.type, job.key or "")


def settles_one_edge(self: Edges, parent_id: str, outcome: State) -> list[Edge]:
    return right_settle(self, parent_id, outcome)[:1]


right_settle = Edges.settle


def claims_what_is_not_due(self: lanes.Lanes, heap: list[lanes.Entry]) -> lanes.Entry | None:
    entry = right_first(self, heap)
    return (
        None
        if entry is None
        else entry._replace(run_at=datetime.min.replace(tzinfo=entry.run_at.tzinfo))
    )


right_first = lanes.Lanes._first


def pause_ignored(key: LaneKey, request: ClaimRequest, pauses: Sequence[Pause]) -> bool:
    return right_matches(key, request, [])


right_matches = lanes._matches


def tenant_ignored_by_claim(key: LaneKey, request: ClaimRequest, pauses: Sequence[Pause]) -> bool:
    return right_matches(key, replace(request, tenant=None), pauses)


def events_dropped(self: Log, event: Event) -> None:
    if event.kind != "leased":
        right_append(self, event)


right_append = Log.append


async def together_ignored(self: MemoryStore, commit: Commit) -> Committed:
    return await right_commit(self, replace(commit, together=False))


right_commit = MemoryStore.commit


async def heartbeat_undone(self: MemoryStore, commit: Commit) -> Committed:
    return await right_commit(self, replace(commit, leases_as_read=False))


def keys_kept(self: Keys, job: Job, *, even_if_kept: bool = False) -> None:
    return None


def keys_always_released(self: Keys, job: Job, *, even_if_kept: bool = False) -> None:
    right_release(self, job, even_if_kept=True)


right_release = Keys.release


def blocked_is_claimable(job: Job, *rest: Any, **more: Any) -> tuple[Job, Event]:
    return right_submit(job, *rest, **(more | {"waits": False}))


right_submit = lifecycle.submit

DEFECTS: dict[str, Defect] = {
    "the token check is dropped": patched(lifecycle, "check_lease", no_token_check),
    "the token is checked before the end of the job": patched(
        lifecycle, "check_lease", token_before_terminal
    ),
    "a lapsed lease may still write": patched(lifecycle, "check_lease", lease_never_expires),
    "losses cost no budget": patched(lifecycle, "_spent", losses_are_free),
    "a snooze costs budget": patched(lifecycle, "_effects_of_verb", snooze_costs),
    "a lost job goes to the back of the line": patched(
        lifecycle, "_effects_of_verb", loss_moves_run_at
    ),
    "retry_at is ignored": patched(lifecycle, "_retry_at", retry_at_ignored),
    "a retry past the budget is allowed": patched(lifecycle, "_holds", retry_past_budget),
    "tokens repeat": patched(lifecycle, "token_of", lambda attempt, nonce: "1.same"),
    "dependencies do not block": patched(lifecycle, "submit", blocked_is_claimable),
    "capacity is freed from lost jobs, too": patched(changes, "freed_by", freed_from_lost),
    "children are not judged": patched(changes, "ripple", no_ripple),
    "the sweep does nothing": patched(recovery, "sweep", no_sweep),
    "AFTER_ANY waits for all": patched(graph, "judge", any_means_all),
    "failures are not propagated": patched(graph, "judge", nothing_falls),
    "a key is shared between tenants": patched(submission, "_scope", key_without_tenant),
    "only one edge of a parent is settled": patched(Edges, "settle", settles_one_edge),
    "the tenant filter is skipped on reads": patched(Context, "sees", lambda self, job: True),
    "the tenant filter is skipped on claims": patched(lanes, "_matches", tenant_ignored_by_claim),
    "jobs are claimed before they are due": patched(lanes.Lanes, "_first", claims_what_is_not_due),
    "pauses are ignored": patched(lanes, "_matches", pause_ignored),
    "the version is not compared": patched(
        commit, "is_current", lambda tables, read, *, lease_too=False: True
    ),
    "together is ignored": patched(MemoryStore, "commit", together_ignored),
    "a reaper undoes a heartbeat": patched(MemoryStore, "commit", heartbeat_undone),
    "a commit undoes notes": patched(commit, "keep_newer", lambda after, stored: after),
    "some events are not written": patched(Log, "append", events_dropped),
    "keys are never released": patched(Keys, "release", keys_kept),
    "keys that are kept are released": patched(Keys, "release", keys_always_released),
    "a fence is not checked": patched(
        leases, "holds", lambda tables, fence, now: fence.job_id in tables.jobs
    ),
    "the backoff has no memory": patched(
        Exponential, "delay", lambda self, failures, draw=0.5: 1.0
    ),
}

DEFECTS |= shares.DEFECTS
DEFECTS |= completion.DEFECTS
DEFECTS |= encryption.DEFECTS
DEFECTS |= failures.DEFECTS
DEFECTS |= fencing.DEFECTS
DEFECTS |= graph_races.DEFECTS
DEFECTS |= limits.DEFECTS
DEFECTS |= metadata.DEFECTS
DEFECTS |= pace.DEFECTS
DEFECTS |= schedules.DEFECTS
DEFECTS |= slots.DEFECTS

CASES: list[Case] = [case for name in ("store", "manager") for case in load(name).cases]


def likely_first(name: str) -> Sequence[Case]:
    """All cases, those first that are about what is wrong: a defect is mostly caught at once."""
    if name not in graph_races.DEFECTS:
        return CASES
    return sorted(CASES, key=lambda case: _topic(case) not in graph_races.TOPICS)


def _topic(case: Case) -> tuple[str, ...]:
    return tuple(case.function.__module__.split(".")[-2:])


async def objections(cases: Sequence[Case]) -> str | None:
    """The first case that fails."""
    for case in cases:
        try:
            await case.run("memory:")
        except Exception:  # noqa: BLE001 - any failure is an objection
            return case.name
    return None


async def test_without_a_defect_nothing_objects() -> None:
    assert await objections(CASES) is None


@pytest.mark.long
@pytest.mark.parametrize("name", DEFECTS)
async def test_the_kit_objects(name: str) -> None:
    with DEFECTS[name]():
        assert await objections(likely_first(name)) is not None, (
            f"no case of the kit notices that {name}"
        )


WITHIN_A_PART = (
    contracts.DEFECTS
    | operators.DEFECTS
    | questions.DEFECTS
    | metadata.WITHIN_A_PART
    | slots.WITHIN_A_PART
    | worker.WITHIN_A_PART
)


@pytest.mark.parametrize("name", WITHIN_A_PART)
async def test_the_part_of_the_suite_objects(name: str) -> None:
    suite, part, defect = WITHIN_A_PART[name]
    cases = [case for case in load(suite).cases if case.part == part]
    assert await objections(cases) is None
    with defect():
        assert await objections(cases) is not None, f"no case of {suite} notices that {name}"
