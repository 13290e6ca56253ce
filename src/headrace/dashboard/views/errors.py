"""Errors: jobs that ended badly, in groups of what went wrong, to be run again group by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headrace.dashboard.asked import Asked, View
from headrace.dashboard.links import Value
from headrace.dashboard.same import Same, command, curl
from headrace.manager import ErrorGroup
from headrace.manager.bulk import group_of
from headrace.manager.matching import fingerprint_of
from headrace.model import Job, State

LOOKED_AT = 500
"""The newest failures: groups are made of them, and the page says how far back they go."""
TREND_PARTS = 24
ATTEMPTS_SPAN = timedelta(days=1)
BAD = (State.FAILED, State.DEAD)


@dataclass
class Group:
    """Jobs whose last errors differ in nothing but variable parts."""

    error: ErrorGroup
    jobs: list[Job] = field(default_factory=list)

    @property
    def fingerprint(self) -> str | None:
        """The same as the group of its attempts has."""
        return fingerprint_of(self.newest)

    @property
    def key(self) -> str:
        """Tells it from the others, and nothing of what it says."""
        return f"{self.error.queue}/{self.error.state}/{self.fingerprint}"

    @property
    def count(self) -> int:
        return len(self.jobs)

    @property
    def newest(self) -> Job:
        return self.jobs[0]

    @property
    def last(self) -> datetime:
        return max(_ended(job) for job in self.jobs)

    @property
    def first(self) -> datetime:
        return min(_ended(job) for job in self.jobs)

    def trend(self, since: datetime, until: datetime) -> list[float]:
        """How many there were in each part of the time."""
        step = max((until - since) / TREND_PARTS, timedelta(milliseconds=1))
        counts = [0.0] * TREND_PARTS
        for job in self.jobs:
            counts[min(TREND_PARTS - 1, int((_ended(job) - since) / step))] += 1
        return counts

    @property
    def query(self) -> dict[str, Value]:
        """What finds them, as far as an address can say it."""
        return {
            "queue": self.error.queue,
            "type": self.error.type,
            "state": self.error.state.value,
            "code": self.error.code,
        }


async def errors(asked: Asked) -> View:
    states = tuple(State(word) for word in asked.words("state") if word in BAD) or BAD
    queues, types, codes = asked.words("queue"), asked.words("type"), asked.words("code")
    page = await asked.manager.find(
        states=states,
        queues=queues or None,
        types=types or None,
        newest_first=True,
        limit=LOOKED_AT,
    )
    failed = [
        job
        for job in page.jobs
        if not codes or (job.failure is not None and job.failure.code in codes)
    ]
    groups: dict[ErrorGroup, Group] = {}
    for job in failed:
        key = group_of(job)
        groups.setdefault(key, Group(key)).jobs.append(job)
    ordered = sorted(groups.values(), key=lambda one: (-one.count, one.error.type))
    until = asked.now
    since = min((_ended(job) for job in failed), default=until)
    return View(
        "errors.html",
        "Errors",
        {
            "groups": ordered,
            "failed": len(failed),
            "since": since,
            "until": until,
            "is_all": page.cursor is None,
            "states_asked": states,
            "looked_at": LOOKED_AT,
            "attempts": await asked.manager.error_groups(
                until - ATTEMPTS_SPAN, until, queues=queues or None, types=types or None, limit=50
            ),
            "only": [*(("queue", one) for one in queues), *(("type", one) for one in types)]
            + [("code", one) for one in codes],
        },
        same=_same(asked, states, queues, types, codes),
    )


def _ended(job: Job) -> datetime:
    return job.finalized_at or job.updated_at


def _same(
    asked: Asked,
    states: Sequence[State],
    queues: Sequence[str],
    types: Sequence[str],
    codes: Sequence[str],
) -> Sequence[Same]:
    words = [state.value for state in states]
    return (
        Same(
            "List them",
            command("list", state=words, queue=queues, type=types, tenant=asked.manager.tenant),
            curl(asked.address, "/jobs", query={"state": words, "queue": queues, "type": types}),
        ),
        Same(
            "Say what a redrive would do",
            command(
                *("redrive", "--dry-run"),
                state=words,
                queue=queues,
                type=types,
                code=codes,
                tenant=asked.manager.tenant,
            ),
        ),
    )
