"""Charts as SVG, made here: no script and no style in them, colours by class, so both themes fit. Pure.

What is drawn stretches with the page; what is written must not, so labels stand beside and below the drawing
in units of their own. Each chart says in words what it shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import NamedTuple

from markupsafe import Markup

from headrace.clock import from_us, to_us
from headrace.dashboard import words
from headrace.model import State

WIDE, HIGH = 1000.0, 100.0
"""The units of a drawing, however large it is shown."""
_GRID = (0.0, 0.5, 1.0)
_TICKS_MAX = 6
_LABELS_MAX = 8
_DAY_SECONDS = 86_400
_STEPS_SECONDS = (
    *(60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200),
    *(_DAY_SECONDS, 2 * _DAY_SECONDS, 7 * _DAY_SECONDS),
)
_ROUND = (1, 2, 4, 6, 8, 10)


class Series(NamedTuple):
    """One line, or one layer of a stack."""

    name: str
    values: Sequence[float | None]
    """One for each moment of the chart; None: nothing is known."""
    colour: str
    """A class of the style sheet: a state, or `c1` to `c6`."""


class Part(NamedTuple):
    """One piece of a bar."""

    name: str
    value: float
    colour: str


def spark(values: Sequence[float], label: str) -> Markup:
    """A small line without axes: the shape of what happened lately."""
    top = max([*values, 1e-9])
    step = WIDE / max(1, len(values) - 1)
    line = " ".join(f"{i * step:.1f},{96 - value / top * 92:.1f}" for i, value in enumerate(values))
    return Markup(
        '<svg class="spark" viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" '
        'aria-label="{label}"><polygon points="0,100 {line} 1000,100"/><polyline points="{line}"/></svg>'
    ).format(label=label, line=line)


def bar(parts: Sequence[Part], label: str, *, total: float | None = None) -> Markup:
    """One bar of pieces side by side. `total`: what its whole length stands for."""
    whole = total or sum(part.value for part in parts)
    drawn: list[Markup] = []
    at = 0.0
    for part in parts:
        share = part.value / whole * 100 if whole else 0.0
        if share > 0:
            drawn.append(
                Markup(
                    '<rect class="fill {}" x="{:.3f}%" width="{:.3f}%" height="100%"><title>{}</title></rect>'
                ).format(part.colour, at, share, f"{part.name}: {words.number(part.value)}")
            )
        at += share
    return Markup('<svg class="bar" role="img" aria-label="{}">{}</svg>').format(
        label, _joined(drawn)
    )


def of_states(states: Mapping[State, int]) -> list[Part]:
    """Those that there are, in the order that jobs go through them."""
    return [
        Part(state.value, states[state], state.value) for state in words.ORDER if states.get(state)
    ]


def lines(
    moments: Sequence[datetime], series: Sequence[Series], label: str, unit: str = ""
) -> Markup:
    """Lines over time, each over the same moments."""
    top = _round_up([v for one in series for v in one.values if v is not None])
    drawn: list[Markup] = []
    for one in series:
        for piece in _pieces(one.values):
            points = [(_x(i, len(moments)), _y(value, top)) for i, value in piece]
            if len(points) == 1:  # a moment by itself: as wide as its place
                half = WIDE / max(1, len(moments)) * 0.4
                ((x, y),) = points
                points = [(x - half, y), (x + half, y)]
            path = " ".join(f"{x:.1f},{y:.2f}" for x, y in points)
            drawn.append(Markup('<polyline class="line {}" points="{}"/>').format(one.colour, path))
    drawn += _hover(moments, series, unit)
    return _chart(drawn, _Frame(label, series, _below(moments), top, unit))


def stacked(
    moments: Sequence[datetime], series: Sequence[Series], label: str, unit: str = ""
) -> Markup:
    """Bars over time, each made of the series one above the other."""
    top = _round_up([sum(one.values[i] or 0 for one in series) for i in range(len(moments))])
    width = WIDE / max(1, len(moments))
    gap = min(width * 0.2, 2.0)
    drawn: list[Markup] = []
    for i in range(len(moments)):
        layers = [one.values[i] or 0 for one in series]
        for one, layer, upper in zip(series, layers, accumulate(layers), strict=True):
            if layer:
                drawn.append(
                    _block(one.colour, i * width, width - gap, (upper, upper - layer, top))
                )
    drawn += _hover(moments, series, unit)
    return _chart(drawn, _Frame(label, series, _below(moments), top, unit))


def histogram(
    names: Sequence[str], values: Sequence[float], label: str, colour: str = "c1"
) -> Markup:
    """How many fell into each bucket."""
    top = _round_up(values)
    width = WIDE / max(1, len(values))
    drawn = [
        Markup("<g>{}<title>{}</title></g>").format(
            _block(colour, i * width, width * 0.9, (value, 0, top)),
            f"{name}: {words.number(value)}",
        )
        for i, (name, value) in enumerate(zip(names, values, strict=True))
    ]
    every = max(1, math.ceil(len(names) / _LABELS_MAX))
    below = [
        Markup('<text x="{:.2f}%" y="12" text-anchor="middle">{}</text>').format(
            (i + 0.45) / len(names) * 100, name
        )
        for i, name in enumerate(names)
        if i % every == 0
    ]
    return _chart(drawn, _Frame(label, (), _joined(below), top))


def _block(colour: str, x: float, width: float, values: tuple[float, float, float]) -> Markup:
    """From the lower of two values up to the upper one, on an axis with that top."""
    upper, lower, top = values
    above, below = _y(upper, top), _y(lower, top)
    return Markup(
        '<rect class="fill {}" x="{:.1f}" y="{:.2f}" width="{:.2f}" height="{:.2f}"/>'
    ).format(colour, x, above, width, max(0.6, below - above))


def _x(index: int, of: int) -> float:
    return (index + 0.5) / max(1, of) * WIDE


def _y(value: float, top: float) -> float:
    return (1 - value / top) * HIGH


def _round_up(values: Sequence[float]) -> float:
    """A round number at or above all of them: the top of the axis, whose half is round as well."""
    most = max(values, default=0)
    if most <= 0:
        return 2.0
    power = 10.0 ** math.floor(math.log10(most))
    return next(step * power for step in _ROUND if step * power >= most * (1 - 1e-9))


def _below(moments: Sequence[datetime]) -> Markup:
    """The moments under a chart, in UTC until the viewer's own zone is known."""
    if not moments:
        return Markup("")
    begin, end = to_us(moments[0]) / 1e6, to_us(moments[-1]) / 1e6
    span = max(end - begin, 1.0)
    step = next((one for one in _STEPS_SECONDS if span / one <= _TICKS_MAX), _STEPS_SECONDS[-1])
    by_day = step >= _DAY_SECONDS
    drawn: list[Markup] = []
    second = math.ceil(begin / step) * step
    while second <= end:
        at = from_us(round(second * 1e6)).astimezone(UTC)
        index = (second - begin) / span * (len(moments) - 1)
        drawn.append(
            Markup(
                '<text x="{:.2f}%" y="12" text-anchor="middle" data-at="{}" data-style="{}">{}</text>'
            ).format(
                _x(0, len(moments)) / 10 + index / max(1, len(moments)) * 100,
                words.iso(at),
                "day" if by_day else "minute",
                f"{at:%d %b}" if by_day else f"{at:%H:%M}",
            )
        )
        second += step
    return _joined(drawn)


def _hover(moments: Sequence[datetime], series: Sequence[Series], unit: str) -> list[Markup]:
    """A strip for each moment that says what there is, to whoever points at it."""
    width = WIDE / max(1, len(moments))
    return [
        Markup(
            '<rect class="hover" x="{:.1f}" y="0" width="{:.2f}" height="100"><title>{}</title></rect>'
        ).format(
            i * width,
            width,
            "\n".join(
                [f"{at:%Y-%m-%d %H:%M} UTC"]
                + [
                    f"{one.name}: {_value(value, unit)}"
                    for one in series
                    if (value := one.values[i]) is not None
                ]
            ),
        )
        for i, at in enumerate(moments)
    ]


def _value(value: float, unit: str) -> str:
    text = f"{value:.3g}" if value < 10 else words.compact(value)  # noqa: PLR2004 - of two digits
    return f"{text} {unit}".strip()


def _pieces(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """The line where something is known: it breaks where nothing is."""
    pieces: list[list[tuple[int, float]]] = [[]]
    for i, value in enumerate(values):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append((i, value))
    return [piece for piece in pieces if piece]


class _Frame(NamedTuple):
    """What stands around a drawing."""

    label: str
    series: Sequence[Series]
    below: Markup
    top: float
    unit: str = ""


def _chart(drawn: Sequence[Markup], frame: _Frame) -> Markup:
    label, series, below, top, unit = frame
    keys = _joined(
        [Markup('<li class="key {}">{}</li>').format(one.colour, one.name) for one in series]
    )
    legend = Markup('<ul class="legend">{}</ul>').format(keys) if len(series) > 1 else Markup("")
    grid = _joined(
        [
            Markup('<line class="grid" x1="0" x2="1000" y1="{y:.0f}" y2="{y:.0f}"/>').format(
                y=(1 - part) * HIGH
            )
            for part in _GRID
        ]
    )
    scale = _joined(
        [Markup("<span>{}</span>").format(_value(top * part, unit)) for part in reversed(_GRID)]
    )
    return Markup(
        '<figure class="chart">{legend}<div class="scale" aria-hidden="true">{scale}</div>'
        '<svg class="plot" viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" aria-label="{label}">'
        '{grid}{drawn}</svg><svg class="ticks" aria-hidden="true">{below}</svg></figure>'
    ).format(legend=legend, scale=scale, label=label, grid=grid, drawn=_joined(drawn), below=below)


def _joined(parts: Sequence[Markup]) -> Markup:
    return Markup("").join(parts)
