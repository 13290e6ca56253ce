"""Bulk commands by what jobs are like: the filters, the counts by error, asking, and how far it is."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

import click
import msgspec

from headrace import duration
from headrace.cli.exits import Exit, one_line
from headrace.cli.output import note, state_text
from headrace.cli.progress import progress
from headrace.cli.selection import confirm, count
from headrace.cli.session import Session
from headrace.cli.table import Column
from headrace.cli.values import SECONDS, Written, moment
from headrace.errors import HeadraceError
from headrace.manager import Bulk, ErrorGroup, Matching
from headrace.manager.bulk import Tell
from headrace.model import Category, State

GROUPS_LISTED_MAX = 20
ENCRYPTED = "encrypted"
"""Why jobs are left alone that only the right key could tell of."""
COLUMNS = (
    Column(name="jobs", right=True),
    Column(name="queue", rank=2),
    Column(name="type"),
    Column(name="state", rank=3),
    Column(name="category", rank=4, usual=""),
    Column(name="code", rank=1, usual=""),
    Column(name="message", cut=True, usual=""),
)

_GROUP = re.compile("[0-9a-f]{16}")

F = TypeVar("F", bound=Callable[..., Any])


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """The filters as they were typed."""

    queues: tuple[str, ...]
    types: tuple[str, ...]
    states: tuple[str, ...]
    codes: tuple[str, ...]
    error: str | None
    older_than: float | None
    since: datetime | float | None

    @property
    def given(self) -> bool:
        return any(getattr(self, name) not in ((), None) for name in self.__struct_fields__)

    @property
    def _is_group(self) -> bool:
        """What `headrace errors` lists as a group, and no text of a message."""
        return self.error is not None and _GROUP.fullmatch(self.error) is not None

    def where(self, tags: Sequence[str], now: datetime) -> Matching:
        since = self.since
        if isinstance(since, float):
            since = now - timedelta(seconds=since)
        return Matching(
            queues=self.queues or None,
            types=self.types or None,
            states=self.states or None,
            codes=self.codes or None,
            error=None if self._is_group else self.error,
            error_group=self.error if self._is_group else None,
            tags=tags,
            since=since,
            before=None if self.older_than is None else now - timedelta(seconds=self.older_than),
        )


class GroupRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that ended with the same error, but for its variable parts; `example` is the id of one."""

    jobs: int
    queue: str
    type: str
    state: State
    category: Category | None
    code: str | None
    message: str | None
    example: str


class MatchedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How many were done, or (dry run) would be, and how many left as they were, by the reason."""

    dry_run: bool
    done: int
    left: Mapping[str, int]
    groups: tuple[GroupRecord, ...]


class Verb(Protocol):
    """`redrive_matching` and its like, but for what only one of them is told."""

    def __call__(
        self, where: Matching, *, dry_run: bool = ..., tell: Tell | None = ...
    ) -> Awaitable[Bulk]: ...


def _since(text: str) -> datetime | float:
    """A time, or how long ago."""
    try:
        return duration.parse(text)
    except ValueError:
        return moment(text)


_SINCE = Written("time", _since)


def matching_options(
    possible: frozenset[State], when: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The filters. They arrive as `filters`. `when`: what the time of such a job is."""
    options = (
        click.option("--queue", "queues", multiple=True, help="Of this queue; may be repeated."),
        click.option("--type", "types", multiple=True, help="Of this type; may be repeated."),
        click.option(
            "--state",
            "states",
            multiple=True,
            type=click.Choice([state.value for state in State if state in possible]),
            help="In this state; may be repeated.",
        ),
        click.option(
            "--code",
            "codes",
            multiple=True,
            help="Their last error has this code; may be repeated.",
        ),
        click.option(
            "--error",
            metavar="TEXT|GROUP",
            help="The message of their last error contains it, or headrace errors lists it as the group.",
        ),
        click.option(
            "--older-than", type=SECONDS, metavar="DURATION", help=f"{when} this long ago."
        ),
        click.option(
            "--since", type=_SINCE, metavar="TIME", help=f"{when} since then (or: 2h, 7d ago)."
        ),
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def filters_of(given: dict[str, Any]) -> Filters:
    """Takes the filters out of a command's options."""
    return Filters(**{name: given.pop(name) for name in Filters.__struct_fields__})


def refuse_ids(ids: Sequence[str]) -> None:
    if ids:
        raise click.UsageError(
            "name job ids or filters, not both: which jobs would be meant is not clear"
        )


async def act(
    session: Session,
    verb: Verb,
    where: Matching,
    *,
    doing: str,
    done: str,
    dry_run: bool,
    yes: bool,
) -> Exit:
    """Do it to what matches, after asking; or say what would be done. `doing`, `done`: the verb's forms."""
    with progress("looking") as bar:
        plan = (
            await verb(where, dry_run=True, tell=lambda so_far: bar.show(so_far.matched))
            if dry_run or not yes
            else None
        )
    if dry_run:
        assert plan is not None
        return _print(session, plan, f"would be {done}")
    if plan is not None and plan.done:
        print_groups(session, plan)
        confirm(f"{doing} {count(plan.done)}")
    so_far = Bulk(dry_run=False)

    def tell(now: Bulk) -> None:
        nonlocal so_far
        so_far = now
        bar.show(now.done, None if plan is None else max(plan.done, now.done))

    try:
        with progress(f"{doing}") as bar:
            report = await verb(where, tell=tell)
    except HeadraceError:
        note(f"{count(so_far.done)} {done} before this; run it again to go on")
        raise
    return _print(session, report, done)


def _print(session: Session, report: Bulk, done: str) -> Exit:
    """The exit code tells of jobs that could not be read."""
    code = Exit.REFUSED if ENCRYPTED in report.left else Exit.OK
    if session.out.as_json:
        session.out.document(
            MatchedRecord(
                dry_run=report.dry_run,
                done=report.done,
                left=report.left,
                groups=tuple(map(group_record, report.groups)),
            )
        )
        return code
    left = ", ".join(f"{jobs} {reason}" for reason, jobs in report.left.items())
    session.out.text(f"{count(report.done)} {done}", f"; left as they were: {left}" if left else "")
    print_groups(session, report)
    return code


class Grouped(Protocol):
    @property
    def groups(self) -> tuple[ErrorGroup, ...]: ...


def print_groups(session: Session, report: Grouped) -> None:
    if session.out.as_json or not report.groups:
        return
    session.out.table(COLUMNS, [_cells(one) for one in report.groups[:GROUPS_LISTED_MAX]])
    more = report.groups[GROUPS_LISTED_MAX:]
    if more:
        jobs = sum(one.jobs for one in more)
        session.out.text(f"and {jobs} more in {len(more)} other groups")


def _cells(group: ErrorGroup) -> list[Any]:
    return [
        str(group.jobs),
        group.queue,
        group.type,
        state_text(group.state),
        group.category or "",
        group.code or "",
        one_line(group.message or ""),
    ]


def group_record(group: ErrorGroup) -> GroupRecord:
    return GroupRecord(**msgspec.structs.asdict(group))
