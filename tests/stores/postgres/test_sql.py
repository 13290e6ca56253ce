"""The SQL is literal text in files of named blocks: nothing is put together from values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from headrace.stores import postgres as package
from headrace.stores.postgres.sql import SCHEMA_DEFAULT, Sql, statement_names

FOLDER = Path(package.__file__).parent
MODULES = sorted(FOLDER.glob("*.py"))
OWN = Sql(SCHEMA_DEFAULT)
FUNCTIONS = OWN.functions()

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


def _plain(text: str) -> str:
    return re.sub(r"--.*", "", text)


@pytest.mark.parametrize("name", sorted(statement_names()))
def test_a_block_holds_one_statement_and_is_used(name: str) -> None:
    text = _plain(OWN.query(name))
    assert ";" not in text
    assert STATEMENT.match(text)
    assert name in _named(), "no verb names it"


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_is_named_as_its_block_and_runs_literal_statements(name: str) -> None:
    text = _plain(FUNCTIONS[name])
    assert re.findall(r"CREATE OR REPLACE FUNCTION \"headrace\"\.(\w+)\(", text) == [name]
    assert bool(re.search(r"\bEXECUTE\b", text)) == (name in NAMED_TABLES)


def test_another_schema_reads_the_same_text() -> None:
    other = Sql('o"dd')
    for name in statement_names():
        assert other.query(name) == OWN.query(name).replace('"headrace".', '"o""dd".')
    for name, text in FUNCTIONS.items():
        assert other.functions()[name] == text.replace('"headrace".', '"o""dd".')
