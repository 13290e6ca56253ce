"""Looking at one job: `show` says what it is, `explain` why it is not running."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click
import msgspec
from rich.text import Text

from headrace import duration
from headrace.cli.exits import Exit, one_line, visible
from headrace.cli.output import id_text, state_text
from headrace.cli.records import (
    DependencyRecord,
    FailedAttemptRecord,
    child_record,
    failed_attempt_record,
    parent_record,
)
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.envelope import is_sealed, published, told, unpack
from headrace.job_record import JobRecord, job_fields, job_record
from headrace.manager import FailedAttempt, Reason, Why
from headrace.model import Job, Priority

NEIGHBOURS_LISTED_MAX = 10


class ShownRecord(JobRecord, frozen=True, kw_only=True):
    """A job with the jobs before and after it."""

    depends_on: tuple[DependencyRecord, ...]
    dependents: tuple[DependencyRecord, ...]
    log: Any
    """What the handlers have logged."""
    failed_attempts: tuple[FailedAttemptRecord, ...]
    """The last three, oldest first."""


class ReasonRecord(msgspec.Struct, frozen=True, kw_only=True):
    why: Why
    message: str
    facts: Mapping[str, Any]


class PlaceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How many due jobs of the queue go before it; `at_least`: there are more."""

    ahead: int
    at_least: bool


class ExplainedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The reasons, the one to look at first."""

    job: JobRecord
    reasons: tuple[ReasonRecord, ...]
    place: PlaceRecord | None
    """Null: it is not in line."""


class QueueExplainedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What waits in a queue, and the reasons, the one to look at first."""

    queue: str
    ready: int
    delayed: int
    blocked: int
    running: int
    waited_seconds: float | None
    reasons: tuple[ReasonRecord, ...]


@command("show", examples=("headrace show 3f0c2f7e-4a53-4c0e-9a27-6b8f9f1f6a11",))
@click.argument("id")
@in_session()
async def show(session: Session, id: str) -> Exit:
    """Show one job: state, payload, result, links, and how its last attempts failed."""
    job = await session.jobs.get(id)
    before = tuple(map(parent_record, await session.jobs.store.edges(child_id=job.id)))
    after = tuple(map(child_record, await session.jobs.store.edges(parent_id=job.id)))
    failed = await session.jobs.failed_attempts(job.id) if job.failures + job.losses else ()
    if session.out.as_json:
        session.out.document(
            ShownRecord(
                **job_fields(job),
                depends_on=before,
                dependents=after,
                log=None if job.log_json is None else msgspec.Raw(published(job.log_json)),
                failed_attempts=tuple(map(failed_attempt_record, failed)),
            )
        )
        return Exit.OK
    now = session.jobs.clock.now()
    session.out.fields(
        [
            ("id", id_text(job.id)),
            ("type", job.type),
            ("state", state_text(job.state)),
            ("tenant", job.tenant),
            ("queue", job.queue),
            ("priority", Priority(job.priority).name.lower()),
            ("tags", ", ".join(job.tags) or None),
            ("attempts", _attempts(job)),
            ("worker", job.assignee),
            ("progress", _progress(job)),
            ("created", _happened(job.created_at, now)),
            ("runs from", None if job.is_terminal else _when(job.run_at, now)),
            ("started", _happened(job.started_at, now)),
            ("lease until", _when(job.lease_until, now)),
            ("ended", _happened(job.finalized_at, now)),
            ("last error", _failure(job)),
            ("key", job.key),
            ("limit key", job.limit_key),
            ("redrive of", job.previous_id),
            ("spawned by", job.parent_id),
            ("depends on", _neighbours(before)),
            ("dependents", _neighbours(after)),
            ("payload", _json(job.payload_json)),
            ("checkpoint", _json(job.checkpoint_json)),
            ("result", _json(job.result_json)),
        ]
    )
    for line in [*_failed(failed, now), *_log(job)]:
        session.out.text(f"  {line}")
    return Exit.OK


def _check_explained(*, id: str | None, queue: str | None) -> None:
    if (id is None) == (queue is None):
        raise click.UsageError("name a job, or --queue NAME, one of the two")


@command(
    "explain",
    examples=(
        "headrace explain 3f0c2f7e-4a53-4c0e-9a27-6b8f9f1f6a11",
        "headrace explain --queue mail",
    ),
)
@click.argument("id", required=False)
@click.option("--queue", help="Explain this queue instead: why nothing of it starts.")
@in_session(check=_check_explained)
async def explain(session: Session, id: str | None, queue: str | None) -> Exit:
    """Say why a job is not running, or why nothing of a queue starts.

    It may not be due, be blocked by other jobs, wait on a paused queue, or nobody may be asking for
    jobs like it. Every reason that applies is given, the one to look at first.
    """
    if queue is not None:
        return await _explain_queue(session, queue)
    assert id is not None  # checked before
    explained = await session.jobs.explain(id)
    job, place = explained.job, explained.place
    if session.out.as_json:
        reasons = tuple(map(_reason_record, explained.reasons))
        told = None if place is None else PlaceRecord(ahead=place.ahead, at_least=place.at_least)
        session.out.document(ExplainedRecord(job=job_record(job), reasons=reasons, place=told))
        return Exit.OK
    session.out.text(
        id_text(job.id), f" ({job.type}, queue {job.queue}) is ", state_text(job.state), ":"
    )
    _print_reasons(session, explained.reasons)
    if place is not None and place.ahead:
        session.out.text(
            f"  in line behind {place.ahead}{' or more' if place.at_least else ''} of its queue"
        )
    return Exit.OK


async def _explain_queue(session: Session, queue: str) -> Exit:
    explained = await session.jobs.explain_queue(queue)
    if session.out.as_json:
        session.out.document(
            QueueExplainedRecord(
                queue=explained.queue,
                ready=explained.ready,
                delayed=explained.delayed,
                blocked=explained.blocked,
                running=explained.running,
                waited_seconds=explained.waited_seconds,
                reasons=tuple(map(_reason_record, explained.reasons)),
            )
        )
        return Exit.OK
    session.out.text(f"queue {queue}: {explained.told}")
    _print_reasons(session, explained.reasons)
    return Exit.OK


def _print_reasons(session: Session, reasons: Sequence[Reason]) -> None:
    now = session.jobs.clock.now()
    for reason in reasons:
        session.out.text(f"  - {one_line(reason.message)}", (_relative(reason, now), "dim"))


def _reason_record(reason: Reason) -> ReasonRecord:
    return ReasonRecord(why=reason.why, message=reason.message, facts=reason.facts)


def _relative(reason: Reason, now: datetime) -> str:
    """The times of a reason as ages, which is what one wants to know first."""
    ages = [duration.age(fact, now) for fact in reason.facts.values() if isinstance(fact, datetime)]
    return f" ({', '.join(ages)})" if ages else ""


def _failed(attempts: Sequence[FailedAttempt], now: datetime) -> list[str]:
    """The last attempts that failed, each with its traceback."""
    told = ["failed attempts:"] if attempts else []
    for one in attempts:
        why = one_line(f"{one.told} ({one.category})")
        told.append(f"  {one.attempt}, {duration.age(one.at, now)}: {why}")
        told += [f"    {visible(line)}" for line in (one.traceback or "").splitlines()]
    return told


def _log(job: Job) -> list[str]:
    """What the handlers have logged, a line each."""
    if job.log_json is None:
        return []
    if is_sealed(job.log_json):
        return [f"log: {_json(job.log_json)}"]
    return ["log:"] + [
        one_line(
            f"  {line.get('at', '')} attempt {line.get('attempt', '?')}: {line.get('text', '')}"
            + "".join(f" {name}={value!r}" for name, value in line.get("fields", {}).items())
        )
        for line in job.log
    ]


def _attempts(job: Job) -> str:
    most = "unlimited" if job.max_attempts is None else str(job.max_attempts)
    told = f"{job.failures} failed, {job.losses} lost" if job.failures + job.losses else ""
    return f"{job.attempt} of {most}" + (f" ({told})" if told else "")


def _progress(job: Job) -> str | None:
    if job.progress is None:
        return None
    told = "" if job.progress_note is None else f" {one_line(job.progress_note)}"
    return f"{job.progress:.0%}{told}"


def _when(moment: datetime | None, now: datetime) -> Text | None:
    if moment is None:
        return None
    return Text.assemble(duration.stamp(moment), (f" ({duration.age(moment, now)})", "dim"))


def _happened(moment: datetime | None, now: datetime) -> Text | None:
    if moment is None:
        return None
    return Text.assemble(duration.stamp(moment), (f" ({duration.ago(moment, now)})", "dim"))


def _failure(job: Job) -> str | None:
    if job.failure is None:
        return None
    return one_line(f"{job.failure.told} ({job.failure.category})")


def _neighbours(records: tuple[DependencyRecord, ...]) -> str | None:
    if not records:
        return None
    told = [
        f"{one.job_id} ({one.kind}{'' if one.outcome is None else f', {one.outcome}'})"
        for one in records[:NEIGHBOURS_LISTED_MAX]
    ]
    more = len(records) - len(told)
    return ", ".join(told) + (f" and {more} more" if more else "")


def _json(encoded: bytes | None) -> str | None:
    if encoded is None:
        return None
    return visible(told(unpack(encoded)) if is_sealed(encoded) else encoded.decode())
