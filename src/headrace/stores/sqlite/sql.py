"""The SQL of this package: literal text from files, one per query, read once at import."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources

import msgspec

_PACKAGE = resources.files("headrace.stores.sqlite")


def query(name: str) -> str:
    """The text of `queries/<name>.sql`."""
    return (_PACKAGE / "queries" / f"{name}.sql").read_text("utf-8")


def migrations() -> tuple[str, ...]:
    """The text of every migration, in order: the first takes an empty file to version 1."""
    files = (_PACKAGE / "migrations").iterdir()
    names = sorted(file.name for file in files if file.name.endswith(".sql"))
    return tuple((_PACKAGE / "migrations" / name).read_text("utf-8") for name in names)


def json_list(values: Iterable[str | int]) -> str:
    """A list as one parameter: what `json_each(?)` unfolds."""
    return msgspec.json.encode(list(values)).decode()


def json_list_or_none(values: Iterable[str] | None) -> str | None:
    return None if values is None else json_list(values)
