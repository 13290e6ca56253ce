"""The SQL of this package: literal text from files of named blocks, filled in from the list of columns.

`sql/` holds the statements of the verbs, `functions/` what they call in the server, `migrations/` the tables.
The files say `headrace.` wherever they mean the store's schema. A store in another schema reads the same
text with that one word exchanged, so that it depends on no search path: not on the caller's, and not on
what a connection pooler between us and the server remembers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

from headrace.stores import sqltext
from headrace.stores.postgres.columns import LISTS

SCHEMA_DEFAULT = "headrace"

_NAME = "headrace.stores.postgres"
_PREFIX = f"{SCHEMA_DEFAULT}."
_SIGNATURE = re.compile(
    r"FUNCTION headrace\.(?P<name>\w+)\((?P<parameters>.*?)\)\s+(?:RETURNS (?P<result>.*?)\s+)?LANGUAGE\b",
    re.DOTALL,
)


class Signature(NamedTuple):
    """What a function takes and gives: as long as programs of two versions may call it, this stays."""

    name: str
    parameters: str
    result: str


class Sql:
    """The texts for one schema."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self.quoted_schema = quote(schema)
        self._statements = {name: self._for_schema(text) for name, text in _statements().items()}

    def query(self, name: str) -> str:
        """The statement of this name in `sql/`."""
        return self._statements[name]

    def migrations(self) -> tuple[str, ...]:
        """Every migration, in order: the first takes an empty schema to version 1."""
        return tuple(self._for_schema(text) for text in _migrations())

    def functions(self) -> dict[str, str]:
        """Every function of the present version, by name; each takes the place of the one before."""
        return {name: self._for_schema(text) for name, text in _functions().items()}

    @staticmethod
    @cache
    def functions_digest() -> str:
        """What they say, whatever the schema is called."""
        digest = hashlib.sha256()
        for name, text in _functions().items():
            digest.update(f"{name}\0{text}\0".encode())
        return digest.hexdigest()

    def _for_schema(self, text: str) -> str:
        return text.replace(_PREFIX, f"{self.quoted_schema}.")


def quote(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


@cache
def migration_count() -> int:
    return len(_migrations())


@cache
def statement_names() -> frozenset[str]:
    return frozenset(_statements())


@cache
def signatures() -> Mapping[str, Signature]:
    """Of every function, by name."""
    return {name: _signature(text) for name, text in _functions().items()}


def _signature(text: str) -> Signature:
    found = _SIGNATURE.search(re.sub(r" *--.*", "", text))
    assert found is not None, text[:200]
    return Signature(
        found["name"], _on_one_line(found["parameters"]), _on_one_line(found["result"] or "")
    )


def _on_one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _call(signature: Signature) -> str:
    """The function, called with all its parameters in order."""
    types = [
        parameter.split(maxsplit=1)[1]
        for parameter in signature.parameters.split(", ")
        if parameter and not parameter.startswith("OUT ")
    ]
    arguments = ", ".join(f"${number}::{kind}" for number, kind in enumerate(types, start=1))
    return f"{_PREFIX}{signature.name}({arguments})"


@cache
def _functions() -> dict[str, str]:
    return sqltext.load(_NAME, "functions", LISTS)


@cache
def _statements() -> dict[str, str]:
    calls = {f"calls.{name}": _call(signature) for name, signature in signatures().items()}
    return sqltext.load(_NAME, "sql", {**LISTS, **calls})


@cache
def _migrations() -> tuple[str, ...]:
    folder = resources.files(_NAME) / "migrations"
    files = sorted((file for file in folder.iterdir()), key=lambda file: file.name)
    return tuple(file.read_text("utf-8") for file in files if file.name.endswith(".sql"))
