"""A frame of `headrace top` as lines of text that fit the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from rich.text import Text

from headrace import duration
from headrace.cli.exits import visible
from headrace.cli.output import state_style
from headrace.cli.table import Column, lay_out
from headrace.cli.top_controls import Controls, Sort
from headrace.cli.top_frame import STALE_SECONDS, ErrorFrame, Frame, QueueFrame, WorkerFrame
from headrace.model import DEFAULT_TENANT, failure_told

T = TypeVar("T")

_NONE = "-"
_OVERHEAD = 2
"""Of a section: an empty line and the head of its table."""

_QUEUE_COLUMNS = (
    Column(name="queue", cut=True),
    Column(name="tenant", rank=4, cut=True, usual=DEFAULT_TENANT),
    Column(name="ready", right=True),
    Column(name="delayed", right=True, rank=2),
    Column(name="running", right=True),
    Column(name="blocked", right=True, rank=3),
    Column(name="oldest", right=True),
    Column(name="done/s", right=True),
    Column(name="empty in", right=True, rank=1),
    Column(name="failed", right=True),
    Column(name="dead", right=True),
    Column(name="note", usual="", rank=1),
)
_WORKER_COLUMNS = (
    Column(name="worker", cut=True),
    Column(name="jobs", right=True),
    Column(name="slots", right=True, usual=_NONE),
    Column(name="seen"),
    Column(name="queues", cut=True),
    Column(name="tenant", rank=2, cut=True, usual=""),
    Column(name="tags", rank=1, cut=True, usual=""),
)
_ERROR_COLUMNS = (
    Column(name="errors", right=True),
    Column(name="last at"),
    Column(name="became", rank=2),
    Column(name="queue", rank=1, cut=True),
    Column(name="type", cut=True),
    Column(name="last job", rank=3),
)
_KEYS = "q quit   ↑↓ choose   p pause or resume   s sort: {sort}   / filter"
_WIDE = 110
"""From here on what a failure says has room beside it; else it stands below."""


def lines(
    frame: Frame,
    place: str,
    width: int,
    height: int | None = None,
    controls: Controls | None = None,
) -> list[Text]:
    """The whole frame; with a height, as much of each part as fits, and how much is left out."""
    each = 1 if width >= _WIDE else 2
    arranged = frame.queues if controls is None else controls.arrange(frame.queues)
    wanted = [len(arranged), len(frame.workers), each * len(frame.errors)]
    head = [_title(frame, place), _rates(frame)]
    foot = [] if controls is None else [_foot(controls)]
    shares: Sequence[int] = wanted
    if height is not None:
        shares = share(height - len(head) - len(foot) - _OVERHEAD * len(wanted), wanted)
    selected = None if controls is None else controls.selected
    if controls is None or controls.sort is Sort.NAME:
        queues = _busiest(arranged, shares[0], lambda one: _load(one, selected))
    else:
        queues = _first(arranged, shares[0], selected)
    workers = _busiest(frame.workers, shares[1], lambda one: one.jobs)
    return [
        *head,
        Text(),
        *_table(
            "no queue passes the filter" if frame.queues else "no jobs",
            _QUEUE_COLUMNS,
            [_queue_cells(one, frame, is_selected=_at(one) == selected) for one in queues],
            len(arranged),
            width,
        ),
        Text(),
        *_table(
            "no workers in the last minute",
            _WORKER_COLUMNS,
            [_worker_cells(one, frame) for one in workers],
            len(frame.workers),
            width,
        ),
        Text(),
        *_errors(frame.errors, shares[2] // each, width),
        *foot,
    ]


def share(room: int, wanted: Sequence[int]) -> list[int]:
    """Lines for each part: one after the other in turn, until all have enough or none are left."""
    given = [0 for _ in wanted]
    while room > 0 and given != list(wanted):
        for part, most in enumerate(wanted):
            if room > 0 and given[part] < most:
                given[part] += 1
                room -= 1
    return given


def _title(frame: Frame, place: str) -> Text:
    told = Text() if frame.slots is None else Text("  slots ") + _slots(frame.busy, frame.slots)
    return _fit(
        Text.assemble(
            ("headrace top", "bold"),
            told,
            f"  {visible(place)}  ",
            (duration.stamp(frame.at), "dim"),
        )
    )


def _rates(frame: Frame) -> Text:
    rates = frame.rates
    if rates is None:
        return Text("rates: not yet", "dim")
    more = "+" if frame.at_least else ""
    return _fit(
        Text.assemble(
            f"submitted {_number(rates.submitted)}{more}/s  ",
            f"started {_number(rates.started)}{more}/s  ",
            (f"completed {_number(rates.completed)}{more}/s  ", "green"),
            (f"failed {_number(rates.failed)}{more}/s", "red" if rates.failed else ""),
            (f"  over {duration.brief(frame.seconds)}", "dim"),
        )
    )


def _table(
    nothing: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Text | str]],
    total: int,
    width: int,
) -> list[Text]:
    """Its head says how many rows were left out, if any."""
    if total == 0:
        return [Text(nothing, "dim")]
    table = [*lay_out(columns, rows, width)]
    if len(rows) < total:
        table[0] = Text.assemble(table[0], (f"  and {total - len(rows)} more", "yellow"))
    return [*map(_fit, table)]


def _errors(errors: Sequence[ErrorFrame], room: int, width: int) -> list[Text]:
    if not errors:
        return [Text("no failures", "dim")]
    shown = errors[:room]
    said = [_said(one) for one in shown]
    if width >= _WIDE:
        columns = (*_ERROR_COLUMNS, Column(name="why", cut=True))
        wide = [[*_error_cells(one), why] for one, why in zip(shown, said, strict=True)]
        head, *body = lay_out(columns, wide, width)
    else:
        head, *rows = lay_out(_ERROR_COLUMNS, [_error_cells(one) for one in shown], width)
        indent = " " * (len(_ERROR_COLUMNS[0].name) + 2)
        below = [Text(indent + why) for why in said]
        body = [line for pair in zip(rows, below, strict=True) for line in pair]
    if len(shown) < len(errors):
        head = Text.assemble(head, (f"  and {len(errors) - len(shown)} more", "yellow"))
    return [*map(_fit, (head, *body))]


def _foot(controls: Controls) -> Text:
    """What the keys do, or what is being asked or typed."""
    if controls.asking is not None:
        verb = "pause" if controls.asking.pause else "resume"
        told = f"{verb} queue {controls.asking.queue}? y or n"
        return _fit(Text(visible(told), "bold yellow"))
    if controls.typing:
        return _fit(Text(visible(f"queues with: {controls.filter}_   Enter or Esc"), "bold"))
    keys = _KEYS.format(sort=controls.sort.value)
    if controls.filter:
        keys += f": {controls.filter} (Esc clears)"
    told = f"{controls.note}   {keys}" if controls.note else keys
    return _fit(Text(visible(told), "dim"))


def _busiest(rows: Sequence[T], count: int, load: Callable[[T], float]) -> Sequence[T]:
    """Where not all fit those that matter most, in the order they stand in anyway."""
    if count >= len(rows):
        return rows
    places = sorted(range(len(rows)), key=lambda place: -load(rows[place]))[:count]
    return [rows[place] for place in sorted(places)]


def _first(
    rows: Sequence[QueueFrame], count: int, selected: tuple[str, str] | None
) -> Sequence[QueueFrame]:
    """In their own order; the selected one is always among them."""
    shown = [*rows[:count]]
    chosen = [row for row in rows[count:] if _at(row) == selected]
    return [*shown[:-1], *chosen] if chosen and shown else shown


def _at(row: QueueFrame) -> tuple[str, str]:
    return row.tenant, row.queue


def _load(row: QueueFrame, selected: tuple[str, str] | None) -> float:
    return math.inf if _at(row) == selected else row.running + row.ready + row.failed


def _queue_cells(row: QueueFrame, frame: Frame, *, is_selected: bool) -> list[Text | str]:
    more = "+" if frame.at_least else ""
    done = row.completed_per_second
    oldest = row.oldest_ready_seconds
    style = "yellow" if row.paused else "bold" if row.running else ""
    empty_in = row.drain_seconds if row.ready else None
    notes = [word for word, holds in (("paused", row.paused), ("limits", row.limited)) if holds]
    return [
        Text(row.queue, f"{style} reverse" if is_selected else style),
        row.tenant,
        _count(row.ready),
        _count(row.delayed),
        _count(row.running, "cyan"),
        _count(row.blocked, "yellow"),
        _NONE if oldest is None else duration.brief(oldest),
        _NONE if done is None else f"{_number(done)}{more}",
        _NONE if empty_in is None else duration.brief(empty_in),
        Text(f"{row.failed}{more}", "red" if row.failed else "dim"),
        _count(row.dead, "bold red"),
        Text(" ".join(notes), "bold yellow"),
    ]


def _worker_cells(row: WorkerFrame, frame: Frame) -> list[Text | str]:
    more = "+" if frame.jobs_at_least else ""
    return [
        Text(row.worker, "bold" if row.jobs else ""),
        f"{row.jobs}{more}",
        _slots(row.busy, row.slots),
        _seen(row, frame.at),
        "all" if row.queues is None else ", ".join(row.queues),
        row.tenant or "",
        ", ".join(row.tags),
    ]


def _slots(busy: int | None, slots: int | None) -> Text:
    """Taken of held; marked when there is no room for more."""
    if busy is None or slots is None:
        return Text(_NONE)
    return Text(f"{busy}/{slots}", "yellow" if busy >= slots else "")


def _seen(row: WorkerFrame, now: datetime) -> Text:
    """What claims by itself is silent while it works on what it has; who tells its slots never is."""
    if row.seen_at is None:
        return Text("over 1m ago", "dim")
    may_be_silent = row.slots is None and row.jobs > 0
    stale = (now - row.seen_at).total_seconds() > STALE_SECONDS and not may_be_silent
    return Text(duration.ago(row.seen_at, now), "yellow" if stale else "")


def _error_cells(row: ErrorFrame) -> list[Text | str]:
    latest = row.latest
    return [
        Text(str(row.failures), "bold"),
        Text(f"{latest.at.astimezone(UTC):%H:%M:%S}Z", "dim"),
        Text(latest.state.value, state_style(latest.state)),
        row.queue,
        row.type,
        latest.job_id,
    ]


def _said(row: ErrorFrame) -> str:
    said = None if row.category is None else failure_told(row.code, row.message)
    told = [word for word in (row.category and row.category.value, said) if word]
    return visible(": ".join(told)) or _NONE


def _count(jobs: int, style: str = "") -> Text:
    return Text(str(jobs), style if jobs else "dim")


def _number(value: float) -> str:
    """One decimal below 100: enough to tell slow from none."""
    return f"{value:.0f}" if value == 0 or value >= 100 else f"{value:.1f}"  # noqa: PLR2004 - as it says


def _fit(line: Text) -> Text:
    line.no_wrap = True
    line.overflow = "ellipsis"
    return line
