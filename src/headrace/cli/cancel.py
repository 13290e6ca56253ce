"""`headrace cancel`: by id, by tag, or both; or by what jobs are like."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import click
import msgspec

from headrace.cli.exits import Ended, Exit
from headrace.cli.matching import act, filters_of, matching_options, refuse_ids
from headrace.cli.progress import progress
from headrace.cli.selection import (
    confirm,
    count,
    dry_run_option,
    list_ids,
    require_answer,
    require_selection,
    selection_options,
    yes_option,
)
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.errors import InvalidTransition, JobNotFound, JobTerminal
from headrace.manager import Cancelled
from headrace.manager.bulk import CANCELLABLE
from headrace.model import Job, State
from headrace.policy import CancelMode

_CANCELLED_ALREADY = frozenset({State.CANCELLED, State.ABANDONED})


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    state: State


class CancelledRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`jobs` changed, or (dry run) would change, to the state given; the others were left alone."""

    dry_run: bool
    jobs: tuple[JobState, ...]
    already: tuple[JobState, ...]
    refused: tuple[JobState, ...]
    ended: tuple[JobState, ...]
    not_found: tuple[str, ...]


def _check(
    *, ids: tuple[str, ...], tags: tuple[str, ...], dry_run: bool, yes: bool, **given: Any
) -> None:
    filtered = filters_of(given).given
    if filtered:
        refuse_ids(ids)
    require_selection(ids, tags, filtered=filtered)
    require_answer(tags, filtered=filtered, dry_run=dry_run, yes=yes)


@command(
    "cancel",
    examples=(
        "headrace cancel 3f0c2f7e-4a53-4c0e-9a27-6b8f9f1f6a11 --reason 'wrong address'",
        "headrace cancel --tag campaign=spring --dry-run",
        "headrace cancel --tag campaign=spring --yes",
        "headrace cancel --queue mail --older-than 1h --dry-run",
    ),
)
@selection_options
@matching_options(CANCELLABLE, "Submitted")
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in CancelMode]),
    help="What happens to running jobs: ask their worker to stop, cancel at once, or leave them."
    "  [default: the queue's policy]",
)
@click.option("--reason", help="Recorded with the job.")
@dry_run_option
@yes_option
@in_session(check=_check)
async def cancel(
    session: Session,
    /,
    *,
    ids: tuple[str, ...],
    tags: tuple[str, ...],
    mode: str | None,
    reason: str | None,
    dry_run: bool,
    yes: bool,
    **given: Any,
) -> Exit:
    """Cancel jobs by id, by tag, or both; or whatever matches every filter.

    Those named by IDS and those that have all of the tags are meant; it is done in one step. With a
    filter those are meant that match all of them and have all of the tags, in steps; what runs is
    left alone in the mode not_started.

    Waiting jobs are cancelled at once. A running job is, in cooperative mode, asked to stop, and is
    cancelled when its worker answers.
    """
    chosen = None if mode is None else CancelMode(mode)
    filters = filters_of(given)
    if filters.given:
        return await act(
            session,
            partial(session.jobs.cancel_matching, mode=chosen, reason=reason),
            filters.where(tags, session.jobs.clock.now()),
            doing="cancel",
            done="cancelled, or asked to stop",
            dry_run=dry_run,
            yes=yes,
        )
    if dry_run or (tags and not yes):
        with progress("looking"):
            report = await session.jobs.cancel(
                ids, tags=tags, mode=chosen, reason=reason, dry_run=True
            )
        if not dry_run and report.jobs:
            confirm(f"cancel {count(len(report.jobs))}")
    if not dry_run:
        with progress("cancelling"):
            report = await session.jobs.cancel(ids, tags=tags, mode=chosen, reason=reason)
    if session.out.as_json:
        session.out.document(_record(report, dry_run=dry_run))
    else:
        _print(session, report, dry_run=dry_run)
    _complain(report, ids)
    return Exit.OK


def _record(report: Cancelled, *, dry_run: bool) -> CancelledRecord:
    return CancelledRecord(
        dry_run=dry_run,
        jobs=_states(report.jobs),
        already=_states(report.already),
        refused=_states(report.refused),
        ended=_states(report.ended),
        not_found=report.not_found,
    )


def _states(jobs: Sequence[Job]) -> tuple[JobState, ...]:
    return tuple(JobState(id=job.id, state=job.state) for job in jobs)


def _print(session: Session, report: Cancelled, *, dry_run: bool) -> None:
    would = "would be " if dry_run else ""
    asked = [job for job in report.jobs if job.state is State.CANCELLING]
    stopped = [job for job in report.jobs if job.state is not State.CANCELLING]
    for jobs, outcome in (
        (stopped, f"{would}cancelled"),
        (asked, f"{would}asked to stop; cancelled once the worker answers"),
        (report.already, "asked to stop before; the worker has not answered yet"),
        (report.refused, "left running: this mode only takes jobs that wait"),
        (report.ended, "left as they were: they had ended"),
    ):
        if jobs:
            session.out.text(f"{count(len(jobs))} {outcome}")
            list_ids(session, jobs)
    if not any((report.jobs, report.already, report.refused, report.ended, report.not_found)):
        session.out.text("no job has these tags: nothing to cancel")


def _complain(report: Cancelled, ids: Sequence[str]) -> None:
    """A job that was named must have been there and must have obeyed; a tag may match anything."""
    if report.not_found:
        raise Ended(Exit.NOT_FOUND, JobNotFound.code, f"not found: {', '.join(report.not_found)}")
    named = set(ids)
    if report.refused:
        job = report.refused[0]
        raise Ended(
            Exit.REFUSED,
            InvalidTransition.code,
            f"{count(len(report.refused))} not cancelled: job {job.id} is {job.state}",
        )
    deaf = [job for job in report.ended if job.id in named and job.state not in _CANCELLED_ALREADY]
    if deaf:
        raise Ended(
            Exit.REFUSED,
            JobTerminal.code,
            f"job {deaf[0].id} is {deaf[0].state}: ended jobs cannot be cancelled",
        )
