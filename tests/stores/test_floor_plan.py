"""Whoever knows one store finds his way in the others: the same verb stands in the same file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headrace.stores
from headrace.stores.base import JobStore

ROOT = Path(__file__).parents[2]
STORES = Path(headrace.stores.__file__).parent
PAGE = (ROOT / "docs" / "howto" / "add-a-store.md").read_text("utf-8")
FILES = {
    file: re.findall(r"`(\w+)`", verbs)
    for file, verbs in re.findall(r"^ *\| `(\w+)` \| (`.*`) \|$", PAGE, re.MULTILINE)
}
ENGINES = ("opening", "connection", "schema", "rows", "errors", "diagnose")
"""What a store has that has a file or a server behind it."""


def test_the_page_names_every_verb_once() -> None:
    verbs = [name for name in vars(JobStore) if not name.startswith("_")]
    assert sorted(verb for named in FILES.values() for verb in named) == sorted(verbs)


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres", "redis"])
def test_a_store_has_the_files(store: str) -> None:
    wanted = {*FILES, *(() if store == "memory" else ENGINES)}
    assert wanted - {file.stem for file in (STORES / store).glob("*.py")} == set()


@pytest.mark.parametrize(("store", "folder"), [("sqlite", "sql"), ("postgres", "sql")])
def test_its_sql_stands_in_files_of_the_same_names(store: str, folder: str) -> None:
    modules = {file.stem for file in (STORES / store).glob("*.py")}
    assert {file.stem for file in (STORES / store / folder).glob("*.sql")} <= modules
