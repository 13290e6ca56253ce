"""Acts on many jobs: what one would do, those that go on, and how far one is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from headrace import validation
from headrace.dashboard import charts
from headrace.dashboard.asked import Asked, Values, View
from headrace.dashboard.same import Same, command
from headrace.dashboard.views.jobs import Filters, moment
from headrace.manager import Act, BulkAct, Matching
from headrace.manager.bulk_acts import PLAN_JOBS, Progress
from headrace.model import Job, State

JOBS_SHOWN = 12


async def bulk_acts(asked: Asked) -> View:
    found = await asked.manager.bulk_acts()
    return View(
        "bulk.html",
        "Bulk acts",
        {"found": found, "parts": {one.id: parts(one) for one in found}},
        same=(
            Same(
                "List them",
                command("bulk", "list", tenant=asked.manager.tenant),
            ),
        ),
        every_seconds=1.0 if any(not one.has_ended for one in found) else 5.0,
    )


async def new(asked: Asked) -> View:
    """What it would do: a dry run, counted anew each time."""
    act = validation.check_word(asked.word("act") or Act.REDRIVE, Act)
    filters = Filters.given(asked)
    priority = asked.word("priority")
    where = matching(asked, filters, asked.now)
    plan = await asked.manager.plan_bulk(
        act, where, priority=None if priority is None else validation.check_priority(priority)
    )
    return View(
        "bulk_new.html",
        f"{act.value.title()} all that match",
        {
            "act": act,
            "acts": tuple(Act),
            "filters": filters,
            "query": filters.query,
            "error": asked.word("error"),
            "priority": priority,
            "plan": plan,
            "plan_jobs": PLAN_JOBS,
        },
        same=(
            Same(
                "Say what it would do",
                command(
                    act.value if act is not Act.PRIORITY else "bulk",
                    "--dry-run",
                    queue=filters.queues,
                    type=filters.types,
                    state=filters.states,
                    tag=filters.tags,
                    code=asked.words("code"),
                    error=asked.word("error"),
                    tenant=asked.manager.tenant,
                ),
            ),
        ),
        every_seconds=None,
        topics=(),
    )


async def bulk_act(asked: Asked) -> View:
    act_id = asked.word("id") or ""
    found = await asked.manager.bulk_act(act_id)
    made: Sequence[Job] = ()
    if found.act is Act.REDRIVE:
        made = (
            await asked.manager.find(tags=[found.tag], newest_first=True, limit=JOBS_SHOWN)
        ).jobs
    return View(
        "bulk_act.html",
        f"{found.act.value.title()}: {found.progress}",
        {
            "one": found,
            "filters": told(found),
            "parts": parts(found),
            "total": max(found.expected or 0, found.done + sum(found.left.values())),
            "made": made,
            "can_stop": not found.has_ended
            and found.progress is not Progress.STOPPING
            and asked.may_operate,
        },
        same=(
            Same(
                "How far it is",
                command("bulk", "show", act_id, tenant=asked.manager.tenant),
            ),
        ),
        every_seconds=None if found.has_ended else 1.0,
    )


def matching(values: Values, filters: Filters, now: datetime) -> Matching:
    """The filters of an address as the manager takes them. Jobs that have ended are meant by their end."""
    return Matching(
        queues=filters.queues or None,
        types=filters.types or None,
        states=tuple(State(word) for word in filters.states) or None,
        tags=filters.tags,
        codes=filters.codes or None,
        error=values.word("error"),
        error_group=filters.error_group,
        since=None if filters.since is None else moment(filters.since, now),
        before=None if filters.until is None else moment(filters.until, now),
    )


def told(one: BulkAct) -> list[tuple[str, str]]:
    """Its filters, by name."""
    where = one.where
    listed = {
        "queue": where.queues,
        "type": where.types,
        "state": where.states,
        "tag": where.tags,
        "code": where.codes,
    }
    found = [(name, str(value)) for name, values in listed.items() for value in values or ()]
    single = {"error": where.error, "error group": where.error_group}
    return found + [(name, value) for name, value in single.items() if value is not None]


def parts(one: BulkAct) -> list[charts.Part]:
    """What was done, and what was left."""
    left = sum(one.left.values())
    return [
        charts.Part("done", one.done, "completed"),
        charts.Part("left as they were", left, "cancelled"),
    ]
