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
from headrace.report.section import COMMANDS_SAY, Column, Figure, Section
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
    note = f"<p>{escape(report.note)}</p>" if report.note else ""
    yield f"<header><h1>Headrace report</h1><p>{escape(_about(report))}</p>{note}</header>"
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
    before = f'<dd class="detail before">{escape(figure.before)}</dd>' if figure.before else ""
    return (
        f'<div><dt>{escape(figure.name)}</dt><dd class="value{bad}">{escape(figure.value)}</dd>'
        f'<dd class="detail">{escape(figure.detail)}</dd>{before}</div>'
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
        yield f"<p>{escape(report.verdict)}</p></section>"


def _section(section: Section) -> Iterator[str]:
    stacked = " stacked" if section.is_wide else ""
    yield f'<section id="{section.key}"><h2>{escape(section.title)}</h2><div class="beside{stacked}">'
    yield f"<div><p>{escape(section.says)}</p>"
    if section.data is not None:
        yield _chart(section, section.data)
    yield "</div>"
    if not section.is_empty:
        yield f'<div class="table">{"".join(_table(section))}</div>'
    yield "</div>"
    yield from _commands(section)
    yield "</section>"


def _commands(section: Section) -> Iterator[str]:
    if not section.commands:
        return
    yield f'<div class="commands"><p>{escape(COMMANDS_SAY)}</p><dl>'
    for one in section.commands:
        yield f"<dt>{escape(one.title)}</dt><dd><code>{escape(one.command)}</code></dd>"
    yield "</dl></div>"


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
    head = next((one for one in section.columns if one.unit is Unit.TEXT), section.columns[0])
    yield f'<table role="table"><caption hidden>{escape(section.title)}</caption><thead><tr role="row">'
    for column in section.columns:
        yield f'<th role="columnheader" scope="col" class="{_class(column, None)}">{escape(column.name)}</th>'
    yield "</tr></thead><tbody>"
    for row in section.rows:
        cells = zip(section.columns, row, strict=True)
        told = (_cell(column, value, is_head=column is head) for column, value in cells)
        yield f'<tr role="row">{"".join(told)}</tr>'
    yield "</tbody></table>"


def _cell(column: Column, value: Any, *, is_head: bool) -> str:
    """On a phone a row is a card: the cell brings its column's name, and the head stands on top."""
    kind = _class(column, value) + (" head" if is_head else "")
    told = escape(wording.told(value, column.unit))
    return f'<td role="cell" class="{kind}" data-name="{escape(column.name)}">{told}</td>'


def _class(column: Column, value: Any) -> str:
    if column.unit.is_figure:
        return "figure"
    if column.unit is Unit.TIME:
        return "time"
    return "text long" if len(str(value)) > _LONG_CHARS else "text"
