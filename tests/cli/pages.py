"""The commands of a documentation page, to be run as they stand.

A page's ```console blocks hold commands after `$ ` and what they print; `$ echo $?` shows the exit code
of the command before. A block after the comment `<!-- file: name -->` is that file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class File(NamedTuple):
    name: str
    content: str


class Typed(NamedTuple):
    line: str
    printed: str


_BLOCK = re.compile(
    r"^(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<language>\w+)\n(?P<content>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_CHANGING = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)"), "TIME"),
    (re.compile(r"\b(just now|\d[\d.dhms]* ago|in \d[\d.dhms]*)"), "AGE"),
    (re.compile(r"\b(after|ran) \d[\d.]*m?s\b"), r"\1 SPAN"),
    (re.compile(r"^.*headrace\.db: no such file", re.MULTILINE), "headrace: FILE: no such file"),
    (re.compile(r"^(\[\d\]) \d+$", re.MULTILINE), r"\1 PID"),
    (re.compile(r"\bby \S+-\d+-[0-9a-f]{6}\b"), "by WORKER"),
    (re.compile(r" +"), " "),
)


def steps(page: Path) -> Iterator[File | Typed]:
    """What a reader of the page would do, in order."""
    for block in _BLOCK.finditer(page.read_text("utf-8")):
        if block["file"] is not None:
            yield File(block["file"], block["content"])
        elif block["language"] == "console":
            for part in block["content"].split("$ ")[1:]:
                line, _, printed = part.partition("\n")
                yield Typed(line, printed.strip("\n"))


def steady(text: str) -> str:
    """The text without what differs from run to run."""
    for pattern, instead in _CHANGING:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
