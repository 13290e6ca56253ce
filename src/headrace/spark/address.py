"""A store's url as the processes of a cluster need it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote

from headrace import address
from headrace.errors import InvalidInput, UnknownStore

PATH = "path"
"""What Spark makes of the argument of `load` and `save`."""
NOT_A_PATH = (
    'write .option("url", "postgresql://…"): Spark shows paths in its plans, passwords included'
)


def for_executors(url: str, unchanged: str) -> str:
    """The url of a store that other processes, in other folders, can open.

    Raises InvalidInput, which ends with what was left `unchanged`.
    """
    try:
        parts = address.split(url)
    except UnknownStore as error:
        raise UnknownStore(f"{error.message}; {unchanged}") from error
    url = address.joined(parts)
    if parts.scheme == "memory":
        raise InvalidInput(
            "a memory: store lives in one process, and Spark's executors are others: use sqlite:///path, "
            f"postgresql://… or redis://…; {unchanged}"
        )
    path = unquote(parts.path.removeprefix("/"))
    if parts.scheme == "sqlite" and path and not parts.hosts:
        query = f"?{parts.query}" if parts.query else ""
        return f"sqlite:///{quote(str(Path(path).absolute()))}{query}"
    return url
