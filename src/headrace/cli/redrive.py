"""`headrace redrive`: run failed, dead and cancelled jobs again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from headrace.cli.bulk import begin
from headrace.cli.exits import Exit
from headrace.cli.limits import RATE
from headrace.cli.matching import act, filters_of, matching_options, refuse_ids
from headrace.cli.output import id_text
from headrace.cli.progress import progress
from headrace.cli.selection import (
    LISTED_MAX,
    count,
    dry_run_option,
    list_ids,
    require_answer,
    require_selection,
    selection_options,
    tagged,
)
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.errors import InvalidTransition
from headrace.limits import Rate
from headrace.manager import Act, Submitted
from headrace.manager.retention import REDRIVABLE
from headrace.model import Job


class RedrivenJob(msgspec.Struct, frozen=True, kw_only=True):
    """`id` is the new job (null in a dry run); `created` false: it was redriven before and lives."""

    previous_id: str
    id: str | None
    created: bool


class RedrivenRecord(msgspec.Struct, frozen=True, kw_only=True):
    dry_run: bool
    jobs: tuple[RedrivenJob, ...]


def _check(
    *,
    ids: tuple[str, ...],
    tags: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    rate: Rate | None,
    **given: Any,
) -> None:
    filtered = filters_of(given).given
    if rate is not None and not filtered:
        raise click.UsageError("--rate is for redriving by a filter")
    if filtered:
        refuse_ids(ids)
        require_answer((), filtered=True, dry_run=dry_run, yes=yes)
    require_selection(ids, tags, filtered=filtered)


@command(
    "redrive",
    examples=(
        "headrace redrive 3f0c2f7e-4a53-4c0e-9a27-6b8f9f1f6a11",
        "headrace redrive --tag campaign=spring --dry-run",
        "headrace redrive --state dead --queue mail --code E503 --since 2h --dry-run",
        "headrace redrive --error 3f0c2f7e4a534c0e --rate 50/s",
    ),
)
@selection_options
@matching_options(REDRIVABLE, "Ended")
@dry_run_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask before acting by a filter.")
@click.option(
    "--rate",
    type=RATE,
    metavar="N/TIME",
    help="By a filter: no faster than this (50/s, 100/m), as a bulk act that workers carry on.",
)
@in_session(check=_check)
async def redrive(
    session: Session,
    /,
    *,
    ids: tuple[str, ...],
    tags: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    rate: Rate | None,
    **given: Any,
) -> Exit:
    """Run failed, dead and cancelled jobs again: by id, by tag, or whatever matches every filter.

    Each becomes a new job that is linked to the old one. With a filter each is redriven once, in
    steps: one that was redriven before is left, as its new job stands for it.

    The old jobs stay as they are. While the new job lives, redriving the old one again gives the
    same new job. Of the jobs that a tag finds, the others are passed over.
    """
    filters = filters_of(given)
    if rate is not None:
        where = filters.where(tags, session.jobs.clock.now())
        return await begin(session, Act.REDRIVE, where, dry_run=dry_run, yes=yes, rate=rate)
    if filters.given:
        return await act(
            session,
            session.jobs.redrive_matching,
            filters.where(tags, session.jobs.clock.now()),
            doing="redrive",
            done="redriven",
            dry_run=dry_run,
            yes=yes,
        )
    if dry_run:
        _print_plan(session, await _meant(session, ids, tags))
        return Exit.OK
    with progress("redriving"):
        submitted = await session.jobs.redrive(ids, tags=tags)
    if session.out.as_json:
        session.out.document(_record(submitted))
    else:
        _print(session, submitted)
    return Exit.OK


async def _meant(session: Session, ids: Sequence[str], tags: Sequence[str]) -> list[Job]:
    """What `JobManager.redrive` would take, or the error it would raise."""
    jobs = {job_id: await session.jobs.get(job_id) for job_id in ids}
    for job in jobs.values():
        if job.state not in REDRIVABLE:
            raise InvalidTransition(
                f"job {job.id} is {job.state}; only failed, dead and cancelled jobs can be redriven",
                job_id=job.id,
            )
    found = await tagged(session, tags, sorted(REDRIVABLE))
    return list((jobs | {job.id: job for job in found}).values())


def _print_plan(session: Session, jobs: Sequence[Job]) -> None:
    if session.out.as_json:
        plan = tuple(RedrivenJob(previous_id=job.id, id=None, created=False) for job in jobs)
        session.out.document(RedrivenRecord(dry_run=True, jobs=plan))
        return
    session.out.text(f"{count(len(jobs))} would be redriven")
    list_ids(session, jobs)


def _record(submitted: Submitted) -> RedrivenRecord:
    return RedrivenRecord(
        dry_run=False,
        jobs=tuple(
            RedrivenJob(previous_id=job.previous_id or "", id=job.id, created=new)
            for job, new in zip(submitted.jobs, submitted.created, strict=True)
        ),
    )


def _print(session: Session, submitted: Submitted) -> None:
    created = sum(submitted.created)
    existing = len(submitted.jobs) - created
    session.out.text(
        f"{count(created)} redriven",
        f"; redriven before, and not ended yet: {existing}" if existing else "",
    )
    for job in submitted.jobs[:LISTED_MAX]:
        session.out.text("  ", job.previous_id or "", " -> ", id_text(job.id))
    if len(submitted.jobs) > LISTED_MAX:
        session.out.text(f"  and {len(submitted.jobs) - LISTED_MAX} more")
