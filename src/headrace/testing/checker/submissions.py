"""What clients submitted against what is stored: no loss, no invention, one key one job."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from headrace.model import TERMINAL, EventKind, Job
from headrace.stores.base import KeyScope
from headrace.testing.checker.histories import Breach, History, Said


def no_loss(history: History) -> Iterator[Breach]:
    """Every acknowledged submission is stored, live or ended. One that was never answered may be either."""
    for asked in history.client.submissions:
        if asked.answer is not None and asked.answer not in history.jobs:
            yield Breach(asked.answer, "its submission was acknowledged, and it is not there")


def no_invention(history: History) -> Iterator[Breach]:
    """Nothing is there that nobody did: no job, no run without a lease, no result without a run."""
    yield from _uncalled_jobs(history)
    yield from _uncalled_runs(history)
    yield from _uncalled_results(history)


def idempotent(history: History) -> Iterator[Breach]:
    """One key, one job, however often it is submitted, and also when the first answer never came."""
    holders: dict[KeyScope, list[Job]] = {}
    for job in history.jobs.values():
        scope = _scope(job)
        if scope is not None:
            holders.setdefault(scope, []).append(job)
    for held, jobs in holders.items():
        for one, other in _together(history, jobs):
            yield Breach(other.id, f"job {one.id} holds the key {held.key!r} at the same time")
    for asked in history.client.submissions:
        answer = None if asked.answer is None else history.jobs.get(asked.answer)
        if asked.key is not None and answer is not None and _scope(answer) != asked.key:
            yield Breach(answer.id, f"it was the answer for the key {asked.key.key!r}, not its own")


def _uncalled_jobs(history: History) -> Iterator[Breach]:
    asked = history.client.submissions
    ids = {one.job_id for one in asked if one.job_id is not None}
    # A client that lets the store name its jobs knows them by their keys, or by the answer.
    ids |= {one.answer for one in asked if one.answer is not None}
    keys = {one.key for one in asked if one.key is not None}
    for job in history.jobs.values():
        if job.id not in ids and (job.key is None or _scope(job) not in keys):
            yield Breach(job.id, "nobody submitted it")
        if job.id not in history.of_job:
            yield Breach(job.id, "it is stored, and the log knows nothing of it")
    for job_id in history.of_job.keys() - history.jobs.keys():
        yield Breach(job_id, "the log speaks of it, and it is not there")


def _uncalled_runs(history: History) -> Iterator[Breach]:
    leased = {
        (event.job_id, event.attempt) for event in history.events if event.kind is EventKind.LEASED
    }
    for (job_id, attempt), runs in history.runs_of.items():
        if (job_id, attempt) not in leased:
            yield Breach(job_id, f"attempt {attempt} ran without a lease")
        if len(runs) > 1:
            yield Breach(job_id, f"attempt {attempt} ran {len(runs)} times")


def _uncalled_results(history: History) -> Iterator[Breach]:
    for event in history.events:
        if event.kind is EventKind.COMPLETED and not any(
            run.said is Said.COMPLETED
            for run in history.runs_of.get((event.job_id, event.attempt), ())
        ):
            yield Breach(
                event.job_id, f"attempt {event.attempt} is recorded as completed by no run"
            )


def _together(history: History, jobs: list[Job]) -> Iterator[tuple[Job, Job]]:
    """Jobs of one key that held it at once; where keys are kept, each holds it from its birth on."""
    spans = []
    for job in jobs:
        places = [place for place, _ in history.of_job.get(job.id, ())]
        ended = [
            place for place, event in history.of_job.get(job.id, ()) if event.after in TERMINAL
        ]
        start = places[0] if places else 0
        end = ended[-1] if ended and history.keys_released else len(history.events)
        spans.append((start, end, job))
    spans.sort(key=lambda span: span[0])
    for (_, end, one), (start, _, other) in pairwise(spans):
        if start < end:
            yield one, other


def _scope(job: Job) -> KeyScope | None:
    return None if job.key is None else KeyScope(job.tenant, job.queue, job.type, job.key)
