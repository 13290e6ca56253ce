"""The page: one file, offline, safe against what jobs say, and readable without seeing the charts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from headrace.report import Report, build, read
from headrace.report.charts import DRAWN, NARROW
from headrace.report.labels import shortened
from headrace.report.page import page, svg
from tests.report.tables import AFTERNOON, NOON, write

SECTIONS = (*DRAWN, "advice")


@pytest.fixture(scope="module")
def html(afternoon: Report) -> str:
    return page(afternoon)


class Tags(HTMLParser):
    """Every tag with its attributes, and the tags left open."""

    VOID = frozenset({"meta", "br", "img", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_file_refers_to_nothing_outside(html: str) -> None:
    links = {
        value
        for _, attributes in Tags(html).seen
        for name, value in attributes.items()
        if name in {"href", "src", "xlink:href", "data", "action"} and value
    }
    assert links == {f"#{key}" for key in DRAWN}
    assert set(re.findall(r'https?://[^"<> ]+', html)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "@import" not in html
    assert set(re.findall(r"url\((.)", html)) <= {"#"}


def test_nothing_in_it_runs(html: str) -> None:
    tags = Tags(html)
    assert "script" not in {tag for tag, _ in tags.seen}
    assert not [name for _, attributes in tags.seen for name in attributes if name.startswith("on")]


def test_what_jobs_say_is_text(html: str) -> None:
    assert "cannot reach &lt;text&gt; &amp; &lt;script&gt;" in html
    assert "<script" not in html


def test_tags_are_balanced_and_ids_unique(html: str) -> None:
    tags = Tags(html)
    assert tags.open == []
    ids = [attributes["id"] for _, attributes in tags.seen if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert set(SECTIONS) <= set(ids)


def test_every_chart_says_what_it_shows_and_has_a_table_beside_it(html: str) -> None:
    tags = Tags(html).seen
    drawings = [attributes for _, attributes in tags if attributes.get("role") == "img"]
    assert len(drawings) == 2 * len(DRAWN)
    assert all(one["aria-label"] for one in drawings)
    assert [tag for tag, _ in tags].count("table") == len(DRAWN)
    assert ("html", {"lang": "en"}) in tags


def test_it_suits_light_dark_paper_and_phones(html: str) -> None:
    for query in ("prefers-color-scheme: dark", "print", "max-width"):
        assert re.search(rf"@media \(?{query}", html)
    assert 'name="viewport"' in html


def test_an_empty_lake_gives_a_page_without_charts(empty_lake: Path) -> None:
    made = page(build(read(empty_lake)))
    assert "<svg" not in made
    assert "Nothing happened in this time." in made
    assert "Nothing in these figures asks for a change." in made


@pytest.mark.parametrize("key", DRAWN)
def test_each_chart_is_drawn_from_its_table(key: str, afternoon: Report) -> None:
    (section,) = [one for one in afternoon.sections if one.key == key]
    assert section.data is not None
    chart = DRAWN[key](section.data, NARROW)
    spec = chart.to_dict()
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    drawn = svg(chart, "x")
    assert drawn.startswith("<svg")
    marks = {"traffic": "line", "backlog": "area"}.get(key, "rect")
    assert f"mark-{marks}" in drawn
    assert re.search(rf'mark-{marks} role-mark[^>]*>.*?<path[^>]* d="M', drawn)
    assert "NaN" not in drawn


def test_one_moment_is_drawn_as_bars(tmp_path: Path) -> None:
    """Over time there would be a dot, or one block that fills the chart."""
    tables = {
        name: rows for name, rows in AFTERNOON.items() if name not in ("throughput", "backlog")
    }
    held = {
        name: [row for row in rows if row.get("hour", NOON) == NOON]
        for name, rows in tables.items()
    }
    held["throughput"] = [{"minute": NOON, "submitted": 5, "completed": 3, "dead": 1}]
    held["backlog"] = [{"minute": NOON, "ready": 2, "waiting": 2}]
    report = build(read(write(tmp_path, held)))
    drawn = [one for one in report.sections if one.data is not None]
    assert {one.key for one in drawn} >= {"traffic", "backlog", "latency", "objectives", "errors"}
    for one in drawn:
        picture = svg(DRAWN[one.key](one.data, NARROW), "x")
        assert re.search(r'mark-rect role-mark[^>]*>.*?<path[^>]* d="M', picture), one.key
        assert "00:00" not in picture


@pytest.mark.parametrize("chars", [10, 20, 40])
def test_shortened_names_stay_apart(chars: int) -> None:
    workers = [f"pricing/20ff39{tail}c81a4e55/{tail}" for tail in ("a1", "b2", "c3")]
    names = [*workers, "pricing/20ff39", "x" * 60, f"{'x' * 60}y"]
    short = shortened(names, chars)
    assert len(set(short.values())) == len(names)
    assert max(map(len, short.values())) <= chars
    assert shortened(["send", "fetch"], chars) == {"send": "send", "fetch": "fetch"}
