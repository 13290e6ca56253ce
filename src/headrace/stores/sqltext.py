"""SQL as files of named blocks, filled in when they are loaded.

A block begins with a line `-- name: claim_due` and goes on to the next; comments right below its name
describe it and are not part of its text. Where a block says `{job.columns}`, it gets a list made from
`columns`; where it says `{matching}`, it gets the block of that name. A block that is only part of others
begins with `-- fragment: matching`. A name that nobody knows is an error at import.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import NamedTuple

from headrace.stores.columns import Column

_BLOCK = re.compile(r"^-- (name|fragment): *(\w+) *\n", re.MULTILINE)
_COMMENTS = re.compile(r"\A(?:--.*\n|\s*\n)*")
_PLACE = re.compile(r"^(?P<indent> *)(?P<first>\{[a-z_][\w.]*\})|\{[a-z_][\w.]*\}", re.MULTILINE)


class Block(NamedTuple):
    name: str
    text: str
    is_fragment: bool


def load(package: str, folder: str, lists: Mapping[str, str]) -> dict[str, str]:
    """The statements in every `.sql` file of a package's folder, by name."""
    files = sorted((resources.files(package) / folder).iterdir(), key=lambda file: file.name)
    texts = [file.read_text("utf-8") for file in files if file.name.endswith(".sql")]
    return filled([block for text in texts for block in blocks_of(text)], lists)


def blocks_of(text: str) -> Iterator[Block]:
    """The blocks of one file, as they stand there."""
    _, *parts = _BLOCK.split(text)
    for kind, name, block in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        yield Block(name, _COMMENTS.sub("", block).rstrip(), kind == "fragment")


def filled(blocks: Iterable[Block], lists: Mapping[str, str]) -> dict[str, str]:
    """The statements among the blocks, by name, with everything in braces filled in."""
    by_name: dict[str, Block] = {}
    for block in blocks:
        if block.name in by_name or block.name in lists:
            raise ValueError(f"two blocks of SQL are called {block.name}")
        by_name[block.name] = block

    def text_of(name: str, within: tuple[str, ...]) -> str:
        if name in lists:
            return lists[name]
        if name not in by_name:
            raise ValueError(f"SQL block {within[-1]}: {{{name}}} is neither a list nor a block")
        if name in within:
            raise ValueError(f"SQL block {name} contains itself")

        def fill(place: re.Match[str]) -> str:
            indent = place["indent"] or ""
            part = text_of((place["first"] or place[0])[1:-1], (*within, name))
            return indent + part.removesuffix(";").replace("\n", f"\n{indent}")

        return _PLACE.sub(fill, by_name[name].text)

    return {name: text_of(name, ()) for name, block in by_name.items() if not block.is_fragment}


def names(columns: Iterable[Column], prefix: str = "") -> str:
    """`seq, id, lane`, or with a prefix `jobs.seq, jobs.id, jobs.lane`."""
    return ", ".join(f"{prefix}{column.name}" for column in columns)


def marks(columns: Iterable[Column]) -> str:
    """`?, ?, ?`: a parameter for each."""
    return ", ".join("?" for _ in columns)
