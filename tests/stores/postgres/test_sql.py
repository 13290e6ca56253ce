"""The SQL is literal text in files, one per query: nothing is put together from values, or from fragments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from headrace.stores import postgres as package
from headrace.stores.postgres.sql import SCHEMA_DEFAULT, Sql

FOLDER = Path(package.__file__).parent
MODULES = sorted(FOLDER.glob("*.py"))
QUERIES = sorted((FOLDER / "queries").glob("*.sql"))
FUNCTIONS = sorted((FOLDER / "functions").glob("*.sql"))

STATEMENT = re.compile(
    r"\s*(ALTER|BEGIN|COMMIT|COPY|CREATE|DELETE|DROP|GRANT|INSERT|LISTEN|LOCK|NOTIFY|RELEASE|ROLLBACK"
    r"|SAVEPOINT|SELECT|SET|TRUNCATE|UPDATE|WITH)\s"
)
OUTSIDE = {
    # Names cannot be parameters: the schema's, quoted by us, and those of functions, quoted by the server.
    "schema.py": [
        "CREATE SCHEMA IF NOT EXISTS ",
        "DROP FUNCTION ",
        "SET LOCAL check_function_bodies",
    ],
    # Around a statement on the caller's connection.
    "session.py": ["RELEASE SAVEPOINT", "ROLLBACK TO", "SAVEPOINT headrace"],
    # To make SQLAlchemy begin its transaction.
    "drivers.py": ["SELECT 1"],
}
"""The only statements in Python, by how they begin."""
NAMED_TABLES = {"load_stage", "load_staged", "load_sweep"}
"""Functions about tables whose names are made at run time, and quoted."""


def _texts(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def _named() -> frozenset[str]:
    """Every text in the package's Python."""
    return frozenset(text for module in MODULES for text in _texts(module))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_python_holds_no_sql(module: Path) -> None:
    found = sorted({text for text in _texts(module) if STATEMENT.match(text)})
    allowed = OUTSIDE.get(module.name, [])
    assert [text for text in found if not text.startswith(tuple(allowed))] == []
    assert [start for start in allowed if not any(text.startswith(start) for text in found)] == []


@pytest.mark.parametrize("file", QUERIES, ids=lambda path: path.stem)
def test_a_file_holds_one_statement_and_is_used(file: Path) -> None:
    text = re.sub(r"--.*", "", file.read_text("utf-8"))
    assert ";" not in text
    assert STATEMENT.match(text)
    assert file.stem in _named(), "no verb names it"


@pytest.mark.parametrize("file", FUNCTIONS, ids=lambda path: path.stem)
def test_a_function_is_named_as_its_file_and_runs_literal_statements(file: Path) -> None:
    text = re.sub(r"--.*", "", file.read_text("utf-8"))
    assert re.findall(r"CREATE OR REPLACE FUNCTION headrace\.(\w+)\(", text) == [file.stem]
    assert bool(re.search(r"\bEXECUTE\b", text)) == (file.stem in NAMED_TABLES)


def test_another_schema_reads_the_same_text() -> None:
    own, other = Sql(SCHEMA_DEFAULT), Sql('o"dd')
    for file in QUERIES:
        assert other.query(file.stem) == own.query(file.stem).replace('"headrace".', '"o""dd".')
