"""`headrace delete` and `headrace cleanup`: the end of ended jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from headrace.cli.exits import Ended, Exit
from headrace.cli.matching import act, filters_of, matching_options, refuse_ids
from headrace.cli.output import state_text
from headrace.cli.progress import progress
from headrace.cli.selection import (
    confirm,
    count,
    dry_run_option,
    list_ids,
    require_answer,
    require_selection,
    selection_options,
    tagged,
    yes_option,
)
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.cli.values import SECONDS
from headrace.errors import JobNotFound
from headrace.model import TERMINAL, Job, State

_ROUND = 1000


class DeletedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The ids that went, or (dry run) would go."""

    dry_run: bool
    deleted: tuple[str, ...]
    not_found: tuple[str, ...]


class CleanedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How many went, by state (every ended state, zeros included)."""

    total: int
    deleted: Mapping[State, int]


def _check(
    *, ids: tuple[str, ...], tags: tuple[str, ...], dry_run: bool, yes: bool, **given: Any
) -> None:
    filtered = filters_of(given).given
    if filtered:
        refuse_ids(ids)
    require_selection(ids, tags, filtered=filtered)
    require_answer(tags, filtered=filtered, dry_run=dry_run, yes=yes)


@command(
    "delete",
    examples=(
        "headrace delete 3f0c2f7e-4a53-4c0e-9a27-6b8f9f1f6a11",
        "headrace delete --tag campaign=spring --yes",
        "headrace delete --state completed --queue mail --older-than 7d --dry-run",
    ),
)
@selection_options
@matching_options(TERMINAL, "Ended")
@dry_run_option
@yes_option
@in_session(check=_check)
async def delete(
    session: Session,
    /,
    *,
    ids: tuple[str, ...],
    tags: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    **given: Any,
) -> Exit:
    """Delete ended jobs by id, by tag, or both; or whatever has ended and matches every filter.

    All that are meant are deleted or, when one of them has not ended, none. With a filter those are
    meant that have ended, match all filters and have all of the tags; they go in steps.

    Their events stay in the log.
    """
    filters = filters_of(given)
    if filters.given:
        return await act(
            session,
            session.jobs.delete_matching,
            filters.where(tags, session.jobs.clock.now()),
            doing="delete",
            done="deleted",
            dry_run=dry_run,
            yes=yes,
        )
    found = await tagged(session, tags) if dry_run or not yes else []
    if dry_run:
        named = await _existing(session, ids)
        jobs: Sequence[Job] = list({job.id: job for job in (*named, *found)}.values())
    else:
        if found:
            confirm(f"delete {count(len(found))} by tag")
        with progress("deleting"):
            jobs = await session.jobs.delete(ids, tags=tags)
    gone = {job.id for job in jobs}
    missing = tuple(job_id for job_id in dict.fromkeys(ids) if job_id not in gone)
    _print_deleted(session, jobs, missing, dry_run=dry_run)
    if missing:
        raise Ended(Exit.NOT_FOUND, JobNotFound.code, f"not found: {', '.join(missing)}")
    return Exit.OK


async def _existing(session: Session, ids: Sequence[str]) -> list[Job]:
    jobs = []
    for job_id in ids:
        try:
            jobs.append(await session.jobs.get(job_id))
        except JobNotFound:
            continue
    return jobs


def _print_deleted(
    session: Session, jobs: Sequence[Job], missing: tuple[str, ...], *, dry_run: bool
) -> None:
    if session.out.as_json:
        deleted = tuple(job.id for job in jobs)
        session.out.document(DeletedRecord(dry_run=dry_run, deleted=deleted, not_found=missing))
        return
    if not jobs and missing:
        return
    live = [job for job in jobs if not job.is_terminal]
    if dry_run and live:
        session.out.text(f"none would be deleted: {count(len(live))} of {len(jobs)} have not ended")
        list_ids(session, live)
        return
    session.out.text(f"{count(len(jobs))} {'would be ' if dry_run else ''}deleted")
    list_ids(session, jobs)


@command(
    "cleanup",
    examples=(
        "headrace cleanup",
        "headrace cleanup --completed-older-than 30d --other-older-than 90d",
    ),
)
@click.option(
    "--completed-older-than",
    type=SECONDS,
    metavar="DURATION",
    help="Delete completed jobs that ended this long ago (90s, 5m, 2h, 30d).",
)
@click.option(
    "--other-older-than",
    type=SECONDS,
    metavar="DURATION",
    help="Delete failed, dead, cancelled and abandoned jobs that ended this long ago.",
)
@in_session()
async def cleanup(
    session: Session, *, completed_older_than: float | None, other_older_than: float | None
) -> Exit:
    """Delete jobs that ended long ago. Their events stay in the log.

    Without options the policies decide: completed jobs go after 30 days, the others after 90. With
    one of the options only what that option names is deleted.
    """
    keep = None
    if completed_older_than is not None or other_older_than is not None:
        keep = {
            state: completed_older_than if state is State.COMPLETED else other_older_than
            for state in TERMINAL
        }
    deleted = dict.fromkeys((state for state in State if state in TERMINAL), 0)
    with progress("deleting") as bar:
        while gone := await session.jobs.cleanup(keep, limit=_ROUND):
            for state, jobs in gone.items():
                deleted[state] += jobs
            bar.show(sum(deleted.values()))
    total = sum(deleted.values())
    if session.out.as_json:
        session.out.document(CleanedRecord(total=total, deleted=deleted))
        return Exit.OK
    session.out.text(f"{count(total)} deleted")
    for state, jobs in deleted.items():
        if jobs:
            session.out.text(f"  {jobs} ", state_text(state))
    return Exit.OK
