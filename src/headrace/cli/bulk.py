"""`headrace bulk`: acts on all jobs that match, carried on by any worker whoever dies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click
import msgspec
from msgspec import UNSET

from headrace import duration
from headrace.cli.exits import Exit, one_line
from headrace.cli.limits import RATE
from headrace.cli.matching import (
    GroupRecord,
    filters_of,
    group_record,
    matching_options,
    print_groups,
)
from headrace.cli.output import id_text
from headrace.cli.progress import progress as progress_bar
from headrace.cli.selection import confirm, count, dry_run_option, require_answer
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command, group
from headrace.cli.table import Column
from headrace.cli.values import PAYLOAD, PRIORITY
from headrace.limits import Rate
from headrace.manager import Act, BulkAct, Matching, Progress
from headrace.model import State

PAUSE_SECONDS = (0.02, 1.0)
"""Between two looks at an act that somebody else may carry on, too."""
DONE = {
    Act.CANCEL: "cancelled",
    Act.REDRIVE: "redriven",
    Act.DELETE: "deleted",
    Act.PRIORITY: "given another priority",
}
COLUMNS = (
    Column(name="id"),
    Column(name="act"),
    Column(name="progress"),
    Column(name="done", right=True),
    Column(name="left", right=True, rank=1),
    Column(name="by", rank=2, usual=""),
    Column(name="begun", rank=3),
)


class BulkRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A bulk act and how far it is. `expected`: how many jobs it would be about, where that was counted."""

    id: str
    act: Act
    progress: Progress
    done: int
    left: Mapping[str, int]
    expected: int | None
    tenant: str | None
    actor: str | None
    error: str | None
    created_at: datetime
    ended_at: datetime | None
    groups: tuple[GroupRecord, ...]


class BulksRecord(msgspec.Struct, frozen=True, kw_only=True):
    acts: tuple[BulkRecord, ...]


@group(
    "bulk",
    examples=(
        "headrace bulk start redrive --state dead --queue mail --rate 50/s",
        "headrace bulk list",
    ),
)
def bulk() -> None:
    """Cancel, redrive, delete or reprioritise all jobs that match: start, list, show and cancel such acts.

    An act is stored, and the maintenance of any worker carries it on: it survives whoever started it.
    """


def _check(*, dry_run: bool, yes: bool, act: str, priority: int | None, **_: object) -> None:
    require_answer((), filtered=True, dry_run=dry_run, yes=yes)
    if (act == Act.PRIORITY) == (priority is None):
        raise click.UsageError("--priority is for the act priority, which needs it")


@command(
    "start",
    examples=(
        "headrace bulk start redrive --state dead --error 3f0c2f7e4a534c0e --rate 50/s",
        "headrace bulk start cancel --queue mail --older-than 2d --dry-run",
    ),
)
@click.argument("act", type=click.Choice([act.value for act in Act]))
@matching_options(frozenset(State), "Ended, or where they have not submitted,")
@click.option("--tag", "tags", multiple=True, help="With this tag; repeated: with all of them.")
@click.option("--rate", type=RATE, metavar="N/TIME", help="No faster than this: 50/s, 100/m.")
@click.option("--priority", type=PRIORITY, metavar="NAME|0-4", help="The priority they get.")
@click.option("--reason", help="Why they are cancelled.")
@click.option(
    "--patch",
    type=PAYLOAD,
    default=UNSET,
    metavar="JSON|@FILE|-",
    help="What the payload of each redriven job is merged with.",
)
@dry_run_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask before acting.")
@click.option("--detach", is_flag=True, help="Leave it to the workers, and end.")
@in_session(check=_check)
async def start(
    session: Session,
    /,
    *,
    act: str,
    tags: tuple[str, ...],
    rate: Rate | None,
    priority: int | None,
    reason: str | None,
    patch: Any,
    dry_run: bool,
    yes: bool,
    detach: bool,
    **given: Any,
) -> Exit:
    """Begin an act on all jobs that match every filter, and see it through.

    Interrupted, it is carried on by the workers: bulk show says how far it is, bulk cancel stops it.
    Jobs that are submitted later are not meant.
    """
    where = filters_of(given).where(tags, session.jobs.clock.now())
    return await begin(
        session,
        Act(act),
        where,
        dry_run=dry_run,
        yes=yes,
        detach=detach,
        rate=rate,
        priority=priority,
        reason=reason,
        patch=patch,
    )


async def begin(
    session: Session,
    act: Act,
    where: Matching,
    *,
    dry_run: bool,
    yes: bool,
    detach: bool = False,
    **said: Any,
) -> Exit:
    """Count, ask, start, and see it through."""
    with progress_bar("looking"):
        plan = await session.jobs.plan_bulk(act, where, priority=said.get("priority"))
    many = f"{count(plan.done)}{' or more' if plan.at_least else ''}"
    if dry_run:
        if session.out.as_json:
            session.out.document(plan_record(plan.done, plan.left, plan.groups))
        else:
            left = ", ".join(f"{jobs} {reason}" for reason, jobs in plan.left.items())
            session.out.text(
                f"{many} would be {DONE[act]}", f"; left as they were: {left}" if left else ""
            )
            print_groups(session, plan)
        return Exit.OK
    if not yes and plan.done:
        print_groups(session, plan)
        confirm(f"{act} {many}")
    expected = None if plan.at_least else plan.done
    told = await session.jobs.start_bulk(act, where, expected=expected, **said)
    if not detach:
        told = await _seen_through(session, told)
    return _print_one(session, told)


async def _seen_through(session: Session, told: BulkAct) -> BulkAct:
    shortest, longest = PAUSE_SECONDS
    with progress_bar(f"{told.act}") as bar:
        while not told.has_ended:
            done = await session.jobs.run_bulk_acts(told.id)
            told = await session.jobs.bulk_act(told.id)
            bar.show(told.done, told.expected)
            if not told.has_ended:
                now = session.jobs.clock.now()
                wait = 0.0 if done.next_at is None else (done.next_at - now).total_seconds()
                await asyncio.sleep(min(max(wait, shortest), longest))
    return told


@command("list", examples=("headrace bulk list", "headrace bulk list --json"))
@in_session()
async def list_acts(session: Session) -> Exit:
    """List the acts that go on, and those that have ended in the last thirty days."""
    acts = await session.jobs.bulk_acts()
    if session.out.as_json:
        session.out.document(BulksRecord(acts=tuple(map(_record, acts))))
    elif not acts:
        session.out.text("no bulk acts")
    else:
        now = session.jobs.clock.now()
        session.out.table(
            COLUMNS,
            [
                (
                    id_text(one.id),
                    one.act.value,
                    one.progress.value,
                    str(one.done),
                    str(sum(one.left.values())),
                    one_line(one.actor or ""),
                    duration.ago(one.created_at, now),
                )
                for one in acts
            ],
        )
    return Exit.OK


@command("show", examples=("headrace bulk show 3f0c2f7e-4a53-4c0e-9a27-6b8f9f1f6a11",))
@click.argument("id")
@in_session()
async def show(session: Session, id: str) -> Exit:
    """Show how far an act is."""
    return _print_one(session, await session.jobs.bulk_act(id))


@command("cancel", examples=("headrace bulk cancel 3f0c2f7e-4a53-4c0e-9a27-6b8f9f1f6a11",))
@click.argument("id")
@in_session()
async def cancel(session: Session, id: str) -> Exit:
    """Stop an act. What is done stays done."""
    return _print_one(session, await session.jobs.cancel_bulk(id))


for _command in (start, list_acts, show, cancel):
    bulk.add_command(_command)


def _print_one(session: Session, told: BulkAct) -> Exit:
    code = Exit.REFUSED if told.progress is Progress.FAILED else Exit.OK
    if session.out.as_json:
        session.out.document(_record(told))
        return code
    left = ", ".join(f"{jobs} {reason}" for reason, jobs in told.left.items())
    session.out.text(
        "bulk act ",
        id_text(told.id),
        f" is {told.progress}: {count(told.done)} {DONE[told.act]}",
        f"; left as they were: {left}" if left else "",
        "" if told.error is None else f"; {one_line(told.error)}",
    )
    print_groups(session, told)
    return code


class PlanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a bulk act would do."""

    dry_run: bool
    done: int
    left: Mapping[str, int]
    groups: tuple[GroupRecord, ...]


def plan_record(done: int, left: Mapping[str, int], groups: Any) -> PlanRecord:
    return PlanRecord(dry_run=True, done=done, left=left, groups=tuple(map(group_record, groups)))


def _record(told: BulkAct) -> BulkRecord:
    same = {name: getattr(told, name) for name in BulkRecord.__struct_fields__ if name != "groups"}
    return BulkRecord(**same, groups=tuple(map(group_record, told.groups)))
