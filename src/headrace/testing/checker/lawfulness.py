"""Every change by the lifecycle's own table, and every budget kept."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from headrace import history as rules
from headrace import lifecycle
from headrace.lifecycle import RULES, Verb
from headrace.model import TERMINAL, Event, EventKind, Job, State
from headrace.testing.checker.histories import Breach, History

_FREE = frozenset(
    {
        EventKind.SNOOZED,
        EventKind.RELEASED,
        EventKind.LEASED,
        EventKind.UNBLOCKED,
        EventKind.RESCHEDULED,
        EventKind.UPDATED,
        EventKind.RETIMED,
    }
)
"""What costs nothing."""

Step = tuple[State | None, State, EventKind]


def lawful(history: History) -> Iterator[Breach]:
    """Every event is in the transition table and starts where the last ended; folded they give the row."""
    table = _table(fenced=history.fenced)
    for job_id, placed in history.of_job.items():
        events = [event for _, event in placed]
        for event in events:
            if (event.before, event.after, event.kind) not in table:
                yield Breach(job_id, f"{event.kind}: no rule leads {event.before} to {event.after}")
        if events[0].before is not None:
            yield Breach(job_id, f"its history begins as {events[0].before}")
        for one, other in pairwise(events):
            if other.before is not one.after:
                yield Breach(job_id, f"it was {one.after}, and is {other.before} in the next event")
        job = history.jobs.get(job_id)
        if job is not None:
            yield from _unlike(job, events)


def within_budget(history: History) -> Iterator[Breach]:
    """Failures and losses never pass max_attempts, nothing else counts, and who has spent them is done."""
    for job in history.jobs.values():
        events = [event for _, event in history.of_job.get(job.id, ())]
        for one, other in pairwise(events):
            spent = other.failures + other.losses - one.failures - one.losses
            if not 0 <= spent <= (0 if other.kind in _FREE else 1):
                yield Breach(job.id, f"{other.kind} cost {spent} of its attempts")
        if job.max_attempts is None:
            continue
        for event in events:
            count = event.failures + event.losses
            if count > job.max_attempts:
                yield Breach(job.id, f"{count} failures and losses, {job.max_attempts} allowed")
            elif count == job.max_attempts and event.after not in TERMINAL:
                yield Breach(job.id, f"its attempts are spent, and it is {event.after}")


def _table(*, fenced: bool) -> set[Step]:
    return {
        (
            rule.source,
            rule.target,
            EventKind.ENQUEUED
            if rule.verb is Verb.SUBMIT
            else lifecycle.kind_of(rule.verb, rule.target),
        )
        for rule in RULES
        if not (fenced and rule.unfenced)
    }


def _unlike(job: Job, events: list[Event]) -> Iterator[Breach]:
    for name, value in rules.fold(events).items():
        if getattr(job, name) != value:
            yield Breach(job.id, f"its {name} is {getattr(job, name)}, by its events {value}")
