"""The table of a race in Markdown, and its place in docs/performance.md."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from bench.race.entrants import Entrant, Measure, Store
from bench.race.results import Results

BEGIN = "<!-- race: written by `make race`, not by hand -->"
END = "<!-- end of the race -->"
_HEAD = (
    *("store", "system", "one by one", "bulk of 1,000", "drain, 1 process", "drain, 2 processes"),
    *("idle to start p50 / p99 ms", "CPU worker / server µs per job"),
)
_SPEEDS = (Measure.EACH, Measure.BULK, Measure.DRAIN, Measure.DRAIN_BY_TWO)


def table(results: Results) -> str:
    """Medians; behind each speed the spread of its rounds. Then how often the best peer Headrace is."""
    rows = [_HEAD, ("---",) * len(_HEAD)]
    for store in Store:
        for place, entrant in enumerate(results.on(store)):
            rows.append((store.value if place == 0 else "", *_row(results, entrant)))
        ratios = [_ratio(results, store, measure) for measure in (*_SPEEDS, Measure.IDLE)]
        if any(ratios):
            rows.append(("", "**Headrace : best peer**", *ratios, ""))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(results: Results, entrant: Entrant) -> Sequence[str]:
    speeds = [_speed(results.of(entrant, measure)) for measure in _SPEEDS]
    p50 = results.of(entrant, Measure.IDLE)
    p99 = results.of(entrant, Measure.IDLE, lambda figure: figure.p99)
    idle = f"{statistics.median(p50):.2f} / {statistics.median(p99):.1f}" if p50 else ""
    worker = results.of(entrant, Measure.DRAIN, lambda figure: figure.worker_us)
    server = results.of(entrant, Measure.DRAIN, lambda figure: figure.server_us)
    cpu = f"{statistics.median(worker):.0f}" if worker else ""
    if server:
        cpu += f" / {statistics.median(server):.0f}"
    return (f"{entrant.name} ({entrant.settings})", *speeds, idle, cpu)


def _speed(values: Sequence[float]) -> str:
    if not values:
        return "–"
    middle = statistics.median(values)
    if len(values) == 1:
        return f"{middle:,.0f}"
    spread = (max(values) - min(values)) / middle / 2
    return f"{middle:,.0f} ±{spread:.0%}"


def _ratio(results: Results, store: Store, measure: Measure) -> str:
    found = results.ratio(store, measure)
    return "" if found is None else f"**{found[0]:.2f} ×** {found[1].name}"


def written(page: str, section: str) -> str:
    """The page with this section between its marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError("the page has no place for a race")
    return f"{head}{BEGIN}\n\n{section.strip()}\n\n{END}{tail}"


def write(path: Path, section: str) -> None:
    path.write_text(written(path.read_text(), section))
