"""The text that reaches SQLite, statement by statement, as it was before its columns came from one list."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from headrace.stores.sqlite.sql import query

WANTED: dict[str, str] = json.loads(
    (Path(__file__).parent / "files" / "statements.json").read_text("utf-8")
)


def normal(text: str) -> str:
    """Without comments, and with single spaces."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("--"))
    text = re.sub(r"\s+", " ", "\n".join(lines)).strip().rstrip(";").strip()
    return text.replace("( ", "(").replace(" )", ")")


@pytest.mark.parametrize("name", sorted(WANTED))
def test_the_text_is_as_it_was(name: str) -> None:
    assert normal(query(name)) == WANTED[name]
