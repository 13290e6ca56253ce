"""The race as a picture for the README: per store, how fast each system drains and takes jobs in. SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bench.race.entrants import Entrant, Measure, Store
from bench.race.results import Results

_WIDTH, _LABEL, _BAR_MAX, _BAR, _GAP = 880, 190, 270, 16, 6
_OURS, _PEER, _INK, _FAINT = "#0b7285", "#adb5bd", "#212529", "#6c757d"
_SHOWN = (
    (Measure.DRAIN_BY_TWO, "jobs drained a second, 2 worker processes"),
    (Measure.EACH, "jobs submitted a second, one by one"),
)
_COLUMN = (_WIDTH - _LABEL) // len(_SHOWN)


def picture(results: Results, caption: str) -> str:
    parts: list[str] = []
    y = 34
    for column, (_, title) in enumerate(_SHOWN):
        parts.append(_text(_LABEL + column * _COLUMN, 20, title, size=13, weight="600"))
    for store in Store:
        shown = [one for one in results.on(store) if not one.is_raw]
        if not shown:
            continue
        parts.append(_text(12, y + 14, store.value, size=13, weight="600"))
        y += 22
        for entrant in shown:
            parts += _bars(results, store, entrant, y)
            y += _BAR + _GAP
        y += 12
    parts.append(_text(12, y + 8, caption, size=11, fill=_FAINT))
    height = y + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(told(results))}" font-family="system-ui, sans-serif">\n'
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _bars(results: Results, store: Store, entrant: Entrant, y: int) -> Sequence[str]:
    fill = _OURS if entrant.is_ours else _PEER
    parts = [_text(24, y + 12, entrant.name, size=12)]
    for column, (measure, _) in enumerate(_SHOWN):
        value = results.median(entrant, measure)
        if value is None:
            continue
        most = max(results.median(one, measure) or 0 for one in results.on(store) if not one.is_raw)
        left, width = _LABEL + column * _COLUMN, max(2, round(_BAR_MAX * value / most))
        parts.append(
            f'<rect x="{left}" y="{y}" width="{width}" height="{_BAR}" rx="2" fill="{fill}"/>'
        )
        parts.append(_text(left + width + 6, y + 12, f"{value:,.0f}", size=12))
    return parts


def _text(x: int, y: int, words: str, *, size: int, fill: str = _INK, weight: str = "400") -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{fill}">'
        f"{escape(words)}</text>"
    )


def told(results: Results) -> str:
    """The same for who cannot see it."""
    ratios = [
        f"on {store} Headrace drains {found[0]:.1f} times as fast as {found[1].name}"
        for store in Store
        if (found := results.ratio(store, Measure.DRAIN_BY_TWO)) is not None
    ]
    return "; ".join(ratios) or "Headrace beside its peers"
