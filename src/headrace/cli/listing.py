"""`headrace list`: the jobs that match, page by page."""

from __future__ import annotations

from datetime import datetime

import click
import msgspec
from rich.text import Text

from headrace import duration
from headrace.cli.exits import Exit, one_line
from headrace.cli.output import id_text, state_text
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.cli.table import Column
from headrace.cli.values import MOMENT
from headrace.job_record import JobRecord, job_record
from headrace.model import DEFAULT_TENANT, Job, Priority, State

COLUMNS = (
    Column(name="id"),
    Column(name="type"),
    Column(name="state"),
    Column(name="queue", rank=2),
    Column(name="priority", rank=6, usual=Priority.NORMAL.name.lower()),
    Column(name="attempts", rank=4, right=True),
    Column(name="created", rank=3),
    Column(name="due or ended", rank=5),
    Column(name="tenant", rank=8, usual=DEFAULT_TENANT),
    Column(name="tags", rank=7, cut=True, usual=""),
    Column(name="last error", rank=1, cut=True, usual=""),
)


class PageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One page. `cursor` null: that was all."""

    jobs: tuple[JobRecord, ...]
    cursor: str | None


@command(
    "list",
    examples=(
        "headrace list --state dead --queue mail",
        "headrace list --tag customer=7 --limit 20",
        "headrace list --state failed --state dead --json",
    ),
)
@click.option("--queue", "queues", multiple=True, help="Of this queue; may be repeated.")
@click.option("--type", "types", multiple=True, help="Of this type; may be repeated.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in State]),
    help="In this state; may be repeated.",
)
@click.option("--tag", "tags", multiple=True, help="With this tag; repeated: with all of them.")
@click.option("--worker", help="Held, or last held, by this worker.")
@click.option("--created-from", type=MOMENT, metavar="TIME", help="Submitted at or after.")
@click.option("--created-before", type=MOMENT, metavar="TIME", help="Submitted before.")
@click.option(
    "--oldest-first", is_flag=True, help="In order of submission.  [default: newest first]"
)
@click.option("--limit", type=int, default=50, show_default=True, help="Jobs per page.")
@click.option("--cursor", help="Go on where the page before ended.")
@in_session()
async def list_jobs(
    session: Session,
    *,
    queues: tuple[str, ...],
    types: tuple[str, ...],
    states: tuple[str, ...],
    tags: tuple[str, ...],
    worker: str | None,
    created_from: datetime | None,
    created_before: datetime | None,
    oldest_first: bool,
    limit: int,
    cursor: str | None,
) -> Exit:
    """List jobs, newest first, page by page."""
    page = await session.jobs.find(
        queues=queues or None,
        types=types or None,
        states=[State(state) for state in states] or None,
        tags=tags,
        assignee=worker,
        created_from=created_from,
        created_before=created_before,
        newest_first=not oldest_first,
        limit=limit,
        cursor=cursor,
    )
    if session.out.as_json:
        jobs = tuple(map(job_record, page.jobs))
        session.out.document(PageRecord(jobs=jobs, cursor=page.cursor))
        return Exit.OK
    if not page.jobs:
        session.out.text("no jobs" if cursor is None else "no more jobs")
        return Exit.OK
    now = session.jobs.clock.now()
    session.out.table(COLUMNS, [_row(job, now) for job in page.jobs])
    if page.cursor is not None:
        session.out.text((f"more: add --cursor {page.cursor}", "dim"))
    return Exit.OK


def _row(job: Job, now: datetime) -> tuple[Text | str, ...]:
    """The cells in the order of COLUMNS."""
    if job.finalized_at is not None:
        turn = duration.ago(job.finalized_at, now)
    else:
        turn = duration.age(job.run_at, now)
    most = "∞" if job.max_attempts is None else job.max_attempts
    return (
        id_text(job.id),
        job.type,
        state_text(job.state),
        job.queue,
        Priority(job.priority).name.lower(),
        f"{job.attempt}/{most}",
        duration.ago(job.created_at, now),
        turn,
        job.tenant,
        ", ".join(job.tags),
        "" if job.failure is None else one_line(job.failure.told),
    )
