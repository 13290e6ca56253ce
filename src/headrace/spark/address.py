"""A store's url as the processes of a cluster need it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from headrace.errors import InvalidInput, UnknownStore


def for_executors(url: str, unchanged: str) -> str:
    """The url of a store that other processes, in other folders, can open.

    Raises InvalidInput, which ends with what was left `unchanged`.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise UnknownStore(f"the url of the store is not a url: {error}; {unchanged}") from error
    if parts.scheme == "memory":
        raise InvalidInput(
            "a memory: store lives in one process, and Spark's executors are others: use sqlite:///path, "
            f"postgresql://… or redis://…; {unchanged}"
        )
    path = unquote(parts.path.removeprefix("/"))
    if parts.scheme == "sqlite" and path and not parts.netloc:
        query = f"?{parts.query}" if parts.query else ""
        return f"sqlite:///{quote(str(Path(path).absolute()))}{query}"
    return url
