"""The report as one HTML file that needs nothing else: charts as SVG, no script, no reference outside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from importlib import resources
from typing import Any

import pyarrow as pa
import vl_convert

from headrace.report import charts, wording
from headrace.report.build import Report
from headrace.report.section import Column, Figure, Section
from headrace.report.wording import Unit

_CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "Arial",
    "padding": 8,
    "view": {"stroke": None},
    "axis": {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"},
    "axisX": {"grid": False},
    "axisBand": {"domain": False, "ticks": False},
    "legend": {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"},
}
_LONG_CHARS = 40
_MORE_RANK = 2
"""From this rank on a column is not shown on a phone."""


def page(report: Report) -> str:
    """The whole file."""
    return "\n".join(_page(report))


def _page(report: Report) -> Iterator[str]:
    title = f"Headrace report, {wording.span(report.since, report.until)}"
    style = resources.files("headrace.report").joinpath("page.css").read_text()
    yield "<!doctype html>"
    yield f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{style}</style></head><body>"
    yield f"<header><h1>Headrace report</h1><p>{escape(_about(report))}</p></header>"
    yield f'<dl class="figures">{"".join(map(_figure, report.figures))}</dl>'
    yield f"<nav>{' '.join(_link(section) for section in report.sections)}</nav><main>"
    yield from _advice(report)
    for section in report.sections:
        yield from _section(section)
    yield "</main><footer>Times are UTC. Made from the gold tables of the lake; advice is never applied by "
    yield "itself.</footer></body></html>"


def _about(report: Report) -> str:
    of = f", queue {wording.listed(report.queues)}" if report.queues else ""
    return f"{wording.span(report.since, report.until)}{of}"


def _figure(figure: Figure) -> str:
    bad = " bad" if figure.is_bad else ""
    return (
        f'<div><dt>{escape(figure.name)}</dt><dd class="value{bad}">{escape(figure.value)}</dd>'
        f'<dd class="detail">{escape(figure.detail)}</dd></div>'
    )


def _link(section: Section) -> str:
    return f'<a href="#{section.key}">{escape(section.title)}</a>'


def _advice(report: Report) -> Iterator[str]:
    yield '<section id="advice" class="advice"><h2>Advice</h2>'
    if report.advice:
        yield "<ul>"
        for one in report.advice:
            yield f'<li>{escape(one.advice)}<span class="evidence">{escape(one.evidence)}</span></li>'
        yield "</ul></section>"
    else:
        yield "<p>Nothing in these figures asks for a change.</p></section>"


def _section(section: Section) -> Iterator[str]:
    yield f'<section id="{section.key}"><h2>{escape(section.title)}</h2><p>{escape(section.says)}</p>'
    if not section.is_empty:
        stacked = " stacked" if section.is_wide or section.data is None else ""
        yield f'<div class="beside{stacked}">'
        if section.data is not None:
            yield _chart(section, section.data)
        yield f'<div class="table">{"".join(_table(section))}</div></div>'
    yield "</section>"


def _chart(section: Section, data: pa.Table) -> str:
    """Drawn twice: what is drawn for a wide page cannot be read on a phone."""
    drawn = "".join(
        f'<div class="{name}" role="img" aria-label="{escape(section.drawn)}">'
        f"{svg(charts.DRAWN[section.key](data, width), f'{section.key}-{name}')}</div>"
        for name, width in (("wide", _width(section)), ("narrow", charts.NARROW))
    )
    return f"<figure>{drawn}<figcaption>{escape(section.drawn)}</figcaption></figure>"


def _width(section: Section) -> int:
    return charts.WIDEST if section.is_wide else charts.WIDE


def svg(chart: charts.Chart, name: str) -> str:
    """The chart as SVG for a page that may hold others: its ids carry a name of their own."""
    spec = chart.configure(**_CONFIG).to_dict()
    # The width is that of the whole drawing, whatever the labels take of it.
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    drawn = vl_convert.vegalite_to_svg(spec)
    return re.sub(r'(id="|url\(#)', rf"\g<1>{name}-", drawn)


def _table(section: Section) -> Iterator[str]:
    yield f"<table><caption hidden>{escape(section.title)}</caption><thead><tr>"
    for column in section.columns:
        yield f'<th scope="col" class="{_class(column, None)}">{escape(column.name)}</th>'
    yield "</tr></thead><tbody>"
    for row in section.rows:
        cells = zip(section.columns, row, strict=True)
        yield f"<tr>{''.join(_cell(column, value) for column, value in cells)}</tr>"
    yield "</tbody></table>"


def _cell(column: Column, value: Any) -> str:
    return f'<td class="{_class(column, value)}">{escape(wording.told(value, column.unit))}</td>'


def _class(column: Column, value: Any) -> str:
    if column.unit.is_figure:
        kind = "figure"
    elif column.unit is Unit.TIME:
        kind = "time"
    else:
        kind = "text long" if len(str(value)) > _LONG_CHARS else "text"
    return f"{kind} more" if column.rank >= _MORE_RANK else kind
