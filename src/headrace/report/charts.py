"""The charts, as Vega-Lite: each from one Arrow table whose columns its docstring names.

Over time, of one step alone, there is nothing to see over time: bars are drawn instead.

No chart sets colours for text, lines or background: the page does, and so the same drawing serves light and
dark. Where amounts are shown as shades, it is opacity that varies, for the same reason.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.report.labels import shortened

Chart = alt.Chart | alt.LayerChart

WIDE = 660
WIDEST = 1100
NARROW = 340
HEIGHT = 200
ROW_HEIGHT = 22
"""Of a bar or a row of cells."""
_LABELS_WIDTH = 130
_LABELS_SPARE = 30
"""Labels are shortened by their characters; what is wide among them is not cut once more."""
_LABEL_CHARS = 44
_CHAR_WIDTH = 6.2
"""About what a character of a label takes."""
_TICKS_MAX = 6
_AXIS_WIDTH = 50
"""About what the axis at the left takes of a chart."""

BLUE, GREEN, RED, GREY, AMBER, VIOLET, TEAL = (
    "#4c8dd6",
    "#3f9e64",
    "#d9534f",
    "#8a8f98",
    "#d69a2d",
    "#9a6dd0",
    "#2fa3a0",
)
"""Readable on white and on near-black alike."""
PALETTE = (BLUE, AMBER, TEAL, VIOLET, GREEN, RED)
STATES = {"failed": RED, "dead": VIOLET, "cancelled": GREY, "abandoned": AMBER}
TRAFFIC = {"submitted": BLUE, "completed": GREEN, "failed or dead": RED, "cancelled": GREY}

_DURATION = (
    "datum.value >= 86400 ? format(datum.value / 86400, '.3~g') + ' d' : "
    "datum.value >= 3600 ? format(datum.value / 3600, '.3~g') + ' h' : "
    "datum.value >= 60 ? format(datum.value / 60, '.3~g') + ' m' : "
    "datum.value >= 1 || datum.value == 0 ? format(datum.value, '.3~g') + ' s' : "
    "format(datum.value * 1000, '.3~g') + ' ms'"
)
"""An axis in seconds, in the unit that fits."""
_TICK_SECONDS = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800, 3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600, 86_400),
)
"""Between two ticks: round in the unit that they are written in."""
_LOG_TICKS = (0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 36_000, 86_400)
_LEGEND: dict[str, Any] = {"orient": "top", "title": None}
_LEGEND_ITEM_WIDTH = 28
"""The symbol and the gaps beside its label."""


def traffic(data: pa.Table, width: int = WIDE) -> Chart:
    """`at`, `series` (submitted, completed, failed or dead, cancelled), `jobs`."""
    used = [name for name in TRAFFIC if name == "submitted" or _total(data, name)]
    shown = data.filter(pc.field("series").isin(used))
    if _is_moment(data):
        return _bars(
            shown, width, row="series", amount="jobs", title="jobs", colour=alt.value(BLUE)
        )
    drawn: Chart = (
        alt.Chart(_to_the_end(shown))
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(
            x=_time(data, width, to_the_end=True),
            y=alt.Y("jobs:Q", title="jobs", axis=alt.Axis(tickMinStep=1)),
            color=_colours("series", used, width, [TRAFFIC[name] for name in used]),
        )
        .properties(width=width, height=HEIGHT)
    )
    return drawn


def backlog(data: pa.Table, width: int = WIDE) -> Chart:
    """`at`, `queue`, `ready`."""
    if _is_moment(data):
        return _bars(
            data, width, row="queue", amount="ready", title="jobs due", colour=alt.value(BLUE)
        )
    queues = _distinct(data, "queue")
    drawn: Chart = (
        alt.Chart(_to_the_end(data))
        .mark_area(interpolate="step-after", opacity=0.85)
        .encode(
            x=_time(data, width, to_the_end=True),
            y=alt.Y("ready:Q", stack="zero", title="jobs due", axis=alt.Axis(tickMinStep=1)),
            color=_colours("queue", queues, width),
        )
        .properties(width=width, height=HEIGHT)
    )
    return drawn


def latency(data: pa.Table, width: int = WIDE) -> Chart:
    """`at`, `type`, `wait_seconds`; a logarithmic axis: waits differ by powers of ten."""
    shown = data.filter(pc.field("wait_seconds").is_valid())
    if _is_moment(data):
        return _bars(
            shown,
            width,
            row="type",
            amount="wait_seconds",
            title="p95 wait",
            colour=alt.value(BLUE),
            axis=_durations(shown, "type", "wait_seconds"),
        )
    floor = 0.001
    raised = pc.max_element_wise(shown["wait_seconds"], pa.scalar(floor))
    shown = shown.set_column(shown.schema.get_field_index("wait_seconds"), "wait_seconds", raised)
    drawn: Chart = (
        alt.Chart(_to_the_end(shown))
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(
            x=_time(data, width, to_the_end=True),
            y=alt.Y(
                "wait_seconds:Q",
                scale=alt.Scale(type="log", nice=True),
                title="p95 wait",
                axis=alt.Axis(labelExpr=_DURATION, values=_LOG_TICKS),
            ),
            color=_colours("type", pc.unique(shown["type"]).to_pylist(), width),
        )
        .properties(width=width, height=HEIGHT)
    )
    return drawn


def objectives(data: pa.Table, width: int = WIDE) -> Chart:
    """`at`, `type`, `burn`."""
    if _is_moment(data):
        return _bars(
            data, width, row="type", amount="burn", title="burn rate", colour=alt.value(RED)
        )
    return _cells(
        data,
        width,
        row="type",
        amount="burn",
        colour=RED,
        scale=alt.Scale(type="symlog", domain=[0, 100], range=[0.04, 1], clamp=True),
        legend="burn rate",
        values=[0, 1, 10, 100],
    )


def outcomes(data: pa.Table, width: int = WIDE) -> Chart:
    """`type`, `state` (failed, dead, cancelled, abandoned), `jobs`."""
    states = [state for state in STATES if state in _distinct(data, "state")]
    return _bars(
        data,
        width,
        row="type",
        amount="jobs",
        title="jobs",
        colour=_colours("state", states, width, [STATES[state] for state in states]),
    )


def errors(data: pa.Table, width: int = WIDE) -> Chart:
    """`at`, `group`, `errors`."""
    if _is_moment(data):
        return _bars(
            data,
            width,
            row="group",
            amount="errors",
            title="errors",
            colour=alt.value(RED),
            labels_width=width // 2,
        )
    totals = data.group_by("group").aggregate([("errors", "sum")]).to_pylist()
    names = [row["group"] for row in sorted(totals, key=lambda row: -row["errors_sum"])]
    others = "all others"
    groups = [name for name in names if name != others] + [others] * (others in names)
    colours = [GREY if name == others else PALETTE[i] for i, name in enumerate(groups)]
    limit = _LABEL_CHARS if width < WIDE else 2 * _LABEL_CHARS
    short = shortened(groups, limit)
    named = pa.array([short[name] for name in data["group"].to_pylist()], pa.string())
    data = data.set_column(data.schema.get_field_index("group"), "group", named)
    drawn: Chart = (
        alt.Chart(data)
        .mark_bar(**_column(data, width))
        .encode(
            x=_time(data, width, to_the_end=True),
            y=alt.Y("errors:Q", stack="zero", title="errors", axis=alt.Axis(tickMinStep=1)),
            color=_colours("group", [short[name] for name in groups], width, colours),
            order=alt.Order("group:N"),
        )
        .properties(width=width, height=HEIGHT)
    )
    return drawn


def retries(data: pa.Table, width: int = WIDE) -> Chart:
    """`type`, `retried_seconds`."""
    return _bars(
        data,
        width,
        row="type",
        amount="retried_seconds",
        title="run time that was tried again",
        colour=alt.value(AMBER),
        axis=_durations(data, "type", "retried_seconds"),
    )


def workers(data: pa.Table, width: int = WIDE) -> Chart:
    """`at`, `worker`, `at_once`."""
    if _is_moment(data):
        return _bars(
            data,
            width,
            row="worker",
            amount="at_once",
            title="jobs at once",
            colour=alt.value(BLUE),
            axis=alt.Axis(),
        )
    return _cells(
        data,
        width,
        row="worker",
        amount="at_once",
        colour=BLUE,
        scale=alt.Scale(domainMin=0, range=[0.04, 1]),
        legend="jobs at once",
    )


def tenants(data: pa.Table, width: int = WIDE) -> Chart:
    """`at`, `tenant`, `run_seconds`."""
    if _is_moment(data):
        return _bars(
            data,
            width,
            row="tenant",
            amount="run_seconds",
            title="run time",
            colour=alt.value(BLUE),
            axis=_durations(data, "tenant", "run_seconds"),
        )
    totals = data.group_by("tenant").aggregate([("run_seconds", "sum")]).to_pylist()
    names = [row["tenant"] for row in sorted(totals, key=lambda row: -row["run_seconds_sum"])]
    drawn: Chart = (
        alt.Chart(data)
        .mark_bar(**_column(data, width))
        .encode(
            x=_time(data, width, to_the_end=True),
            y=alt.Y(
                "run_seconds:Q",
                stack="normalize",
                title="share of run time",
                axis=alt.Axis(format="%", tickCount=5),
            ),
            color=_colours("tenant", names, width),
        )
        .properties(width=width, height=HEIGHT)
    )
    return drawn


def paths(data: pa.Table, width: int = WIDE) -> Chart:
    """`type`, `part` (running, waiting for a worker), `seconds`."""
    return _bars(
        data,
        width,
        row="type",
        amount="seconds",
        title="time on critical paths",
        colour=_colours("part", ["running", "waiting for a worker"], width, [BLUE, AMBER]),
        axis=_durations(data, "type", "seconds"),
    )


DRAWN: Mapping[str, Callable[[pa.Table, int], Chart]] = {
    "traffic": traffic,
    "backlog": backlog,
    "latency": latency,
    "objectives": objectives,
    "outcomes": outcomes,
    "errors": errors,
    "retries": retries,
    "workers": workers,
    "tenants": tenants,
    "paths": paths,
}
"""The chart of each section, by its key."""


# --- what the charts have in common --------------------------------------------------------------


def _bars(
    data: pa.Table,
    width: int,
    *,
    row: str,
    amount: str,
    title: str,
    colour: Any,
    axis: alt.Axis | None = None,
    labels_width: int = _LABELS_WIDTH,
) -> Chart:
    """One horizontal bar per row, the longest on top; of counts, unless the axis is another."""
    data = _shortened(data, row, labels_width)
    axis = axis or alt.Axis(tickMinStep=1, format="~s")
    drawn: Chart = (
        alt.Chart(data)
        .mark_bar(height={"band": 0.7})
        .encode(
            x=alt.X(f"{amount}:Q", stack="zero", title=title, axis=axis),
            y=alt.Y(
                f"{row}:N",
                sort="-x",
                title=None,
                axis=alt.Axis(labelLimit=labels_width + _LABELS_SPARE),
            ),
            color=colour,
        )
        .properties(width=width, height=_height(data, row))
    )
    return drawn


def _cells(
    data: pa.Table,
    width: int,
    *,
    row: str,
    amount: str,
    colour: str,
    scale: alt.Scale,
    legend: str,
    values: Sequence[float] | alt.UndefinedType = alt.Undefined,
) -> Chart:
    """One cell per row and step of time, the fuller the more."""
    data = _shortened(data, row, _LABELS_WIDTH)
    shown = alt.Legend(title=legend, orient="top", symbolType="square", values=values)
    drawn: Chart = (
        alt.Chart(_with_end(data))
        .mark_rect(color=colour, stroke=None)
        .encode(
            x=_time(data, width, to_the_end=True),
            x2="end:T",
            y=alt.Y(
                f"{row}:N", title=None, axis=alt.Axis(labelLimit=_LABELS_WIDTH + _LABELS_SPARE)
            ),
            opacity=alt.Opacity(f"{amount}:Q", scale=scale, legend=shown),
        )
        .properties(width=width, height=_height(data, row))
    )
    return drawn


def _height(data: pa.Table, row: str) -> int:
    return ROW_HEIGHT * max(len(_distinct(data, row)), 1)


def _time(data: pa.Table, width: int, *, to_the_end: bool = False) -> alt.X:
    """The axis of time: UTC; hours within a day or two, else dates. `to_the_end`: of the last step."""
    first, last = _ends(data)
    end = last + _step(data) if to_the_end else last
    days = (end - first) / timedelta(days=1)
    shown = "%H:%M" if days <= 1 else "%b %d" if days > 4 else "%b %d %H:%M"  # noqa: PLR2004 - days
    each = 70 if shown == "%H:%M" else 100
    axis = alt.Axis(format=shown, tickCount=max(width // each, 2), labelOverlap=True, title=None)
    domain = [first.isoformat(), end.isoformat()]
    return alt.X("at:T", scale=alt.Scale(type="utc", domain=domain), axis=axis)


def _is_moment(data: pa.Table) -> bool:
    return len(pc.unique(data["at"])) == 1


def _column(data: pa.Table, width: int) -> dict[str, Any]:
    """A bar as wide as its step, to the right of where the step begins."""
    first, last = _ends(data)
    steps = (last - first) / _step(data) + 1
    room = (width - _AXIS_WIDTH) / steps
    return {"width": max(room - 1, 1), "xOffset": room / 2}


def _with_end(data: pa.Table) -> pa.Table:
    """The table with `end`: where the cell of a step ends."""
    step = _step(data)
    ends = pa.array([at + step for at in data["at"].to_pylist()], data["at"].type)
    return data.append_column("end", ends)


def _to_the_end(data: pa.Table) -> pa.Table:
    """With each series' last level once more where its last step ends: a step has a width."""
    step = _step(data)
    last = max(data["at"].to_pylist())
    ends = data.filter(pc.equal(data["at"], pa.scalar(last, data["at"].type)))
    moved = pa.array([at + step for at in ends["at"].to_pylist()], data["at"].type)
    return pa.concat_tables([data, ends.set_column(ends.schema.get_field_index("at"), "at", moved)])


def _ends(data: pa.Table) -> tuple[datetime, datetime]:
    extremes = pc.min_max(data["at"]).as_py()
    return extremes["min"], extremes["max"]


def _step(data: pa.Table) -> timedelta:
    """The shortest time between two of them."""
    times: list[datetime] = sorted(pc.unique(data["at"]).to_pylist())
    return min((b - a for a, b in itertools.pairwise(times)), default=timedelta(hours=1))


def _durations(data: pa.Table, row: str, amount: str) -> alt.Axis:
    """An axis in seconds with ticks at round times."""
    totals = data.group_by(row).aggregate([(amount, "sum")])
    most: float = pc.max(totals[f"{amount}_sum"]).as_py() or 1.0
    last = _TICK_SECONDS[-1]
    days = last * math.ceil(most / last / _TICKS_MAX)
    step = next((one for one in _TICK_SECONDS if most / one <= _TICKS_MAX), days)
    ticks = [step * index for index in range(math.floor(most / step) + 1)]
    return alt.Axis(labelExpr=_DURATION, values=ticks)


def _colours(
    field: str, names: Sequence[str], width: int, colours: Sequence[str] = PALETTE
) -> alt.Color:
    longest = max((len(name) for name in names), default=0)
    room = width - _AXIS_WIDTH
    # In columns that fit: one row of all would run out of the drawing.
    columns = max(min(int(room / (longest * _CHAR_WIDTH + _LEGEND_ITEM_WIDTH)), len(names)), 1)
    several = len(names) > 1
    legend = alt.Legend(**_LEGEND, columns=columns, labelLimit=room) if several else None
    shown = [colours[index % len(colours)] for index in range(len(names))]
    return alt.Color(
        f"{field}:N",
        sort=list(names),
        scale=alt.Scale(domain=list(names), range=shown),
        legend=legend,
    )


def _distinct(data: pa.Table, column: str) -> list[str]:
    found: list[str] = pc.unique(data[column]).to_pylist()
    return sorted(found)


def _total(data: pa.Table, series: str) -> int:
    total: int | None = pc.sum(data.filter(pc.field("series") == series)["jobs"]).as_py()
    return total or 0


def _shortened(data: pa.Table, column: str, width: float) -> pa.Table:
    """Names that fit the width, each still another."""
    short = shortened(_distinct(data, column), int(width / _CHAR_WIDTH))
    names = pa.array([short[name] for name in data[column].to_pylist()], pa.string())
    return data.set_column(data.schema.get_field_index(column), column, names)
