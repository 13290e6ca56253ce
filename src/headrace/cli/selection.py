"""Which jobs a bulk command is about, and asking before it acts on jobs that nobody named."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from headrace.cli.exits import Ended, Exit
from headrace.cli.output import id_text, state_text
from headrace.cli.progress import progress
from headrace.cli.session import Session
from headrace.errors import EmptySelection
from headrace.model import Job, State
from headrace.stores.base import FIND_LIMIT_MAX

LISTED_MAX = 20

F = TypeVar("F", bound=Callable[..., Any])


def selection_options(function: F) -> F:
    """IDS and --tag: the union of both is meant."""
    tag = click.option(
        "--tag", "tags", multiple=True, help="Jobs with this tag; repeated: with all of them."
    )
    return click.argument("ids", nargs=-1, metavar="[IDS]...")(tag(function))


def yes_option(function: F) -> F:
    return click.option(
        "--yes", "-y", is_flag=True, help="Do not ask before acting by --tag or a filter."
    )(function)


def dry_run_option(function: F) -> F:
    return click.option("--dry-run", is_flag=True, help="Only say what would happen.")(function)


def require_selection(ids: Sequence[str], tags: Sequence[str], *, filtered: bool = False) -> None:
    if not ids and not tags and not filtered:
        raise Ended(
            Exit.USAGE,
            EmptySelection.code,
            "name job ids, --tag or a filter such as --state: none would mean every job",
        )


def require_answer(
    tags: Sequence[str], *, filtered: bool = False, dry_run: bool, yes: bool
) -> None:
    """Where nobody can be asked, only --yes will do: always, not only when a job happens to match."""
    if (tags or filtered) and not dry_run and not yes and not sys.stdin.isatty():
        how = "a filter" if filtered else "--tag"
        raise click.UsageError(f"to act by {how} give --yes: there is no terminal to ask on")


def confirm(what: str) -> None:
    """Ask. Returns only if the answer is yes."""
    if not click.confirm(f"This will {what}. Go on?", err=True):
        raise Ended(Exit.REFUSED, "DECLINED", "nothing was changed")


async def tagged(
    session: Session, tags: Sequence[str], states: Iterable[State] | None = None
) -> list[Job]:
    """Every job with all of these tags."""
    found: list[Job] = []
    cursor = None
    with progress("looking") as bar:
        while tags:
            page = await session.jobs.find(
                tags=tags, states=states, limit=FIND_LIMIT_MAX, cursor=cursor
            )
            found += page.jobs
            bar.show(len(found))
            cursor = page.cursor
            if cursor is None:
                break
    return found


def list_ids(session: Session, jobs: Sequence[Job]) -> None:
    """The first of them, and how many more there are."""
    for job in jobs[:LISTED_MAX]:
        session.out.text("  ", id_text(job.id), f"  {job.type}  ", state_text(job.state))
    if len(jobs) > LISTED_MAX:
        session.out.text(f"  and {len(jobs) - LISTED_MAX} more")


def count(jobs: int) -> str:
    return f"{jobs} job" if jobs == 1 else f"{jobs} jobs"
