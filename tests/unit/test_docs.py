"""Generated pages are what their generator makes today."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from headrace import JobManager
from headrace.errors import InvalidInput
from headrace.lifecycle import RULES
from headrace.spark.lake import reconciliation
from headrace.spark.source import options
from tools import contract_table, http_routes, lifecycle_diagram, manager_reference, spark_tables

SOURCE = spark_tables.REFERENCE / "spark-source.md"


def test_the_lifecycle_page_has_not_drifted_from_the_rules() -> None:
    text = lifecycle_diagram.PAGE.read_text()
    assert lifecycle_diagram.page(text) == text, "run: make docs"


def test_the_diagram_shows_every_rule() -> None:
    diagram = lifecycle_diagram.diagram()
    for rule in RULES:
        line = next(
            line
            for line in diagram.splitlines()
            if f"{rule.source or '[*]'} --> {rule.target}:" in line
        )
        assert rule.verb in line


def test_the_contracts_page_has_not_drifted_from_the_kit() -> None:
    assert contract_table.PAGE.read_text() == contract_table.page(), "run: make docs"


def test_the_page_of_the_manager_has_not_drifted_from_the_code() -> None:
    assert manager_reference.PAGE.read_text("utf-8") == manager_reference.page(), "run: make docs"


def test_the_page_of_routes_has_not_drifted_from_the_table() -> None:
    assert http_routes.PAGE.read_text("utf-8") == http_routes.page(), "run: make docs"


def test_the_page_of_the_manager_has_every_verb() -> None:
    told = manager_reference.page()
    for name, member in inspect.getmembers(JobManager):
        if not name.startswith("_") and (callable(member) or isinstance(member, property)):
            assert f"\n### {name}\n" in told, name


# --- the Spark source and the lake ---------------------------------------------------------------


@pytest.mark.parametrize("path", spark_tables.PAGES, ids=lambda path: path.stem)
def test_the_tables_of_spark_have_not_drifted_from_their_definitions(path: Path) -> None:
    text = path.read_text("utf-8")
    assert spark_tables.page(text, spark_tables.PAGES[path]()) == text, "run: make docs"


def test_checks_against_the_store_are_called_as_they_are_told() -> None:
    told = inspect.getsource(reconciliation)
    for name in spark_tables.AGAINST_THE_STORE.values():
        assert f'"{name}"' in told


def test_the_page_of_the_source_has_every_option_and_its_default() -> None:
    with pytest.raises(InvalidInput) as refused:
        options.SourceOptions.parse({"colour": "blue"})
    known = str(refused.value).partition("it takes ")[2].split(", ")
    rows = re.findall(r"^\| (`.+?`) \| (.+?) \|", _section("Options"), re.MULTILINE)
    told = {name: default for names, default in rows for name in re.findall(r"`(\w+)`", names)}
    assert list(told) == known
    assert told["rowsPerPartition"] == f"{options.ROWS_PER_PARTITION:,}"
    assert told["maxRowsPerBatch"] == f"{options.MAX_ROWS_PER_BATCH:,}"
    assert told["retrySeconds"] == f"{options.RETRY_SECONDS:.0f}"
    assert told["startingCursor"] == f"`{options.EARLIEST}`"


def test_the_page_of_the_source_quotes_the_refusal_of_memory() -> None:
    with pytest.raises(InvalidInput) as refused:
        options.SourceOptions.parse({"url": "memory:", "table": "jobs"})
    assert f"headrace.errors.InvalidInput: {refused.value}\n" in _section("Errors")


def _section(heading: str) -> str:
    """Of the page of the source: from this heading to the next of its rank."""
    return SOURCE.read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
