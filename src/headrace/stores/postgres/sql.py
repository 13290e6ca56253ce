"""The SQL of this package: literal text from files, one per query or function.

The files say `headrace.` wherever they mean the store's schema. A store in another schema reads the same
text with that one word exchanged, so that it depends on no search path: not on the caller's, and not on
what a connection pooler between us and the server remembers.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

SCHEMA_DEFAULT = "headrace"

_PACKAGE = resources.files("headrace.stores.postgres")
_PREFIX = f"{SCHEMA_DEFAULT}."


class Sql:
    """The texts for one schema."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self.quoted_schema = quote(schema)
        self._queries: dict[str, str] = {}

    def query(self, name: str) -> str:
        """The text of `queries/<name>.sql`."""
        text = self._queries.get(name)
        if text is None:
            text = self._queries[name] = self._for_schema(_read("queries", name))
        return text

    def migrations(self) -> tuple[str, ...]:
        """Every migration, in order: the first takes an empty schema to version 1."""
        return tuple(self._for_schema(_read("migrations", name)) for name in _names("migrations"))

    def functions(self) -> dict[str, str]:
        """Every function of the present version, by name; each takes the place of the one before."""
        return {name: self._for_schema(_read("functions", name)) for name in _names("functions")}

    @staticmethod
    @cache
    def functions_digest() -> str:
        """What they say, whatever the schema is called."""
        digest = hashlib.sha256()
        for name in _names("functions"):
            digest.update(f"{name}\0{_read('functions', name)}\0".encode())
        return digest.hexdigest()

    def _for_schema(self, text: str) -> str:
        return text.replace(_PREFIX, f"{self.quoted_schema}.")


def quote(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


@cache
def migration_count() -> int:
    return len(_names("migrations"))


@cache
def _read(folder: str, name: str) -> str:
    return (_PACKAGE / folder / f"{name}.sql").read_text("utf-8")


@cache
def _names(folder: str) -> tuple[str, ...]:
    files = (_PACKAGE / folder).iterdir()
    return tuple(
        sorted(file.name.removesuffix(".sql") for file in files if file.name.endswith(".sql"))
    )
