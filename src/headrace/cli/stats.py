"""`headrace stats`: how many jobs there are, by queue and state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click
import msgspec
from rich.text import Text

from headrace.cli.exits import Exit
from headrace.cli.output import state_style
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.cli.table import Column
from headrace.manager import Stats
from headrace.model import CLAIMABLE, DEFAULT_TENANT, State
from headrace.stores.base import Pause, Tally

_ANY_TENANT = "*"
_RANKS = {State.CANCELLING: 5, State.ABANDONED: 4, State.CANCELLED: 3, State.BLOCKED: 2}
"""What goes first on a narrow terminal; the totals still count it."""


class QueueRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One queue of one tenant. `ready` and `delayed` are the claimable states, by due time."""

    tenant: str
    queue: str
    paused: bool
    total: int
    ready: int
    delayed: int
    failures: int
    states: Mapping[State, int]


class StatsRecord(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    ready: int
    delayed: int
    failures: int
    states: Mapping[State, int]
    queues: tuple[QueueRecord, ...]


@command(
    "stats",
    examples=("headrace stats", "headrace stats --queue mail --tag customer=7 --json"),
)
@click.option("--queue", "queues", multiple=True, help="Of this queue; may be repeated.")
@click.option("--tag", "tags", multiple=True, help="With this tag; repeated: with all of them.")
@in_session()
async def stats(session: Session, queues: tuple[str, ...], tags: tuple[str, ...]) -> Exit:
    """Count the jobs by queue and state."""
    counted = await session.jobs.stats(queues=queues or None, tags=tags)
    pauses = [one for one in await session.jobs.pauses() if not queues or one.queue in queues]
    rows = by_queue(counted.tallies, pauses)
    if session.out.as_json:
        session.out.document(
            StatsRecord(
                total=counted.total,
                ready=counted.ready,
                delayed=counted.delayed,
                failures=counted.failures,
                states=counted.states,
                queues=tuple(rows),
            )
        )
    elif not rows:
        session.out.text("no jobs")
    else:
        _print(session, counted, rows)
    return Exit.OK


def by_queue(tallies: Sequence[Tally], pauses: Sequence[Pause]) -> list[QueueRecord]:
    """Queues with jobs, and paused queues without any: whoever paused them wants to see it."""
    found: dict[tuple[str, str], list[Tally]] = {}
    for tally in tallies:
        found.setdefault((tally.tenant, tally.queue), []).append(tally)
    busy = {queue for _, queue in found}
    for pause in pauses:
        if pause.queue not in busy:
            found[pause.tenant or _ANY_TENANT, pause.queue] = []
    return [_queue(tenant, queue, found[tenant, queue], pauses) for tenant, queue in sorted(found)]


def _queue(
    tenant: str, queue: str, tallies: Sequence[Tally], pauses: Sequence[Pause]
) -> QueueRecord:
    states = dict.fromkeys(State, 0) | {one.state: one.jobs for one in tallies}
    delayed = sum(one.delayed for one in tallies)
    return QueueRecord(
        tenant=tenant,
        queue=queue,
        paused=any(one.queue == queue and (one.tenant in (None, tenant)) for one in pauses),
        total=sum(states.values()),
        ready=sum(states[state] for state in CLAIMABLE) - delayed,
        delayed=delayed,
        failures=sum(one.failures for one in tallies),
        states=states,
    )


def _print(session: Session, counted: Stats, rows: list[QueueRecord]) -> None:
    shown = [state for state in State if state not in CLAIMABLE and counted.states[state]]
    columns = [
        Column(name="queue"),
        Column(name="tenant", usual=DEFAULT_TENANT, rank=1),
        Column(name="ready", right=True),
        Column(name="delayed", right=True),
        *(Column(name=state.value, right=True, rank=_RANKS.get(state, 0)) for state in shown),
        Column(name="total", right=True),
    ]
    cells: list[list[Text | str]] = [
        [
            Text.assemble(row.queue, (" (paused)", "bold yellow") if row.paused else ""),
            row.tenant,
            str(row.ready),
            str(row.delayed),
            *(_count(state, row.states[state]) for state in shown),
            str(row.total),
        ]
        for row in rows
    ]
    if len(rows) > 1:
        everything = [counted.ready, counted.delayed, *(counted.states[one] for one in shown)]
        all_cells = ["all", rows[0].tenant, *map(str, everything), str(counted.total)]
        cells.append([Text(cell, "bold") for cell in all_cells])
    session.out.table(columns, cells)


def _count(state: State, jobs: int) -> Text:
    return Text(str(jobs), state_style(state) if jobs else "dim")
