"""Who held a job, when, and whose word counted: fencing and the single holder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta

from headrace.model import LEASED, Event, EventKind, State
from headrace.testing.checker.histories import Breach, History
from headrace.testing.checker.signatures import signature


def fenced(history: History) -> Iterator[Breach]:
    """At most one outcome is accepted per lease, and none from an old one.

    Who wrote an outcome is seen by the token that handlers put into results and messages.
    """
    for job_id, events in history.of_job.items():
        ends = Counter(event.attempt for _, event in events if _leaves(event))
        for attempt, count in ends.items():
            if count > 1:
                yield Breach(job_id, f"the lease of attempt {attempt} ended {count} times")
        for _, event in events:
            yield from _foreign(event.job_id, event.attempt, signature(event.message))
    for job in history.jobs.values():
        if job.state is State.COMPLETED:
            yield from _foreign(job.id, job.attempt, signature(job.result))
    for (job_id, attempt), runs in history.runs_of.items():
        if len({run.token for run in runs}) > 1:
            yield Breach(job_id, f"attempt {attempt} was leased under more than one token")


def single_holder(history: History) -> Iterator[Breach]:
    """Leases of a job never overlap, in the log and by the store's time; none is taken before it lapsed."""
    slack = timedelta(seconds=history.clock_seconds)
    for job_id, events in history.of_job.items():
        held: Event | None = None
        left: Event | None = None
        for _, event in events:
            if event.kind is EventKind.LEASED:
                if held is not None:
                    yield Breach(
                        job_id, f"attempt {event.attempt} began while {held.attempt} held it"
                    )
                if left is not None and event.at < left.at - slack:
                    yield Breach(
                        job_id, f"attempt {event.attempt} began before the one before it was over"
                    )
                held = event
            elif _leaves(event):
                if held is not None and _lapsed_early(held, event):
                    yield Breach(job_id, f"attempt {held.attempt} was taken back before its time")
                held, left = None, event


def _leaves(event: Event) -> bool:
    return event.before in LEASED and event.after not in LEASED


def _lapsed_early(held: Event, event: Event) -> bool:
    """A heartbeat only ever moves the end of a lease further off, so the first end is the least."""
    return (
        event.code == "lease_expired"
        and held.lease_until is not None
        and event.at < held.lease_until
    )


def _foreign(job_id: str, attempt: int, token: str | None) -> Sequence[Breach]:
    if token is None or token.partition(".")[0] == str(attempt):
        return ()
    return [Breach(job_id, f"attempt {attempt} is recorded with the outcome of lease {token}")]
