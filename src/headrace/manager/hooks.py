"""Why a follow-up runs: what the job or the batch that it waited for came to."""

from __future__ import annotations

from typing import Any

from headrace import completion
from headrace.completion import JOIN_TYPE, HookCall, Role
from headrace.manager import batches
from headrace.manager.context import Context
from headrace.model import Failure, Job, State


async def hook_call(context: Context, job: Job) -> HookCall | None:
    """What to tell the handler of this claimed job, or that none is to run. None: it follows nothing.

    Costs nothing for a job that follows nothing.
    """
    if job.type == JOIN_TYPE:
        return HookCall(wanted=False, note="joined")
    link = completion.link_of(job)
    if link is None:
        return None
    role, followed = link
    if role is Role.CALLBACK:
        found = await batches.count(context, followed, job.tenant)
        told = {"id": followed, "total": found.total, **found.outcomes}
        return HookCall(wanted=True, note="all have ended", about={"batch": told})
    return await _hook(context, job, role, followed)


async def _hook(context: Context, job: Job, role: Role, other_id: str) -> HookCall:
    other = (await context.read([other_id])).get(other_id)
    if other is not None and other.tenant != job.tenant:
        other = None  # a tag is only text: it opens no door to another tenant
    outcome = await _outcome(context, job, other_id)
    if outcome is None and other is not None and other.is_terminal:
        outcome = other.state
    state = None if outcome is None else outcome.value
    about = {"id": other_id, "state": state} if other is None else _about(other, outcome)
    wanted = completion.wanted(role, outcome)
    note = f"job {other_id} is {outcome or 'gone'}"
    return HookCall(
        wanted=wanted, note=note if wanted else f"not needed: {note}", about={"job": about}
    )


async def _outcome(context: Context, job: Job, other_id: str) -> State | None:
    """How the other job ended when that released this one.

    The edge says it for good: also when the other job is deleted, or an abandoned one completes late,
    after those who wait for success were told that there is none.
    """
    edges = await context.store.edges(child_id=job.id)
    return next((edge.outcome for edge in edges if edge.parent_id == other_id), None)


def _about(other: Job, outcome: State | None) -> dict[str, Any]:
    return {
        "id": other.id,
        "type": other.type,
        "queue": other.queue,
        "state": (outcome or other.state).value,
        "attempt": other.attempt,
        # What this manager has no key for cannot be told.
        "result": other.result if outcome is State.COMPLETED and not other.is_sealed else None,
        "error": None if outcome is State.COMPLETED else _error(other.failure),
    }


def _error(failure: Failure | None) -> dict[str, Any] | None:
    if failure is None:
        return None
    return {"message": failure.message, "category": failure.category.value, "code": failure.code}
