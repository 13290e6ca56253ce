"""Links between pages lead to pages, and to headings, that are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import site

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_ELSEWHERE = ("http://", "https://", "mailto:")


def links(page: Path) -> Iterator[str]:
    text = _CODE.sub("", page.read_text("utf-8"))
    return (link for link in _LINK.findall(text) if not link.startswith(_ELSEWHERE))


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = _HEADING.findall(_CODE.sub("", page.read_text("utf-8")))
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in kept}


def test_every_page_is_listed_in_the_index_of_its_folder() -> None:
    """The site's navigation is made of those lists."""
    listed = set(site.pages())
    there = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert there - listed == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def test_links_are_found() -> None:
    assert "tutorial/index.md" in set(links(ROOT / "docs" / "index.md"))
