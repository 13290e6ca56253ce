"""The Lua of this package: atomic steps, in files named after the verbs, and the parts that they share.

A script begins with a line `-- script: claim`, and ends where the next one begins. The comment at its head
says which shared parts it uses and which fixed keys it touches; a part says which others it uses itself. The
text that goes to the server is: a table `K` of the keys, the parts in an order in which each comes after
those that it uses, the script.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib import resources

ROOT = "root"

_FOLDER = resources.files("headrace.stores.redis") / "lua"
_SCRIPT = re.compile(r"^-- script: (\w+)\n", re.MULTILINE)
_LABEL = re.compile(r"^-- (\w+) {2,}(.*)$")
_CONTINUED = re.compile(r"^-- {10}(\S.*)$")


class Keys:
    """Key names under one prefix: `{prefix}:rows` and so on. The braces are Redis' hash tag."""

    def __init__(self, prefix: str) -> None:
        self.root = f"{{{prefix}}}"

    def of(self, name: str) -> str:
        """A fixed key; `root` is what scripts derive the others from."""
        return self.root if name == ROOT else f"{self.root}:{name}"

    def tag(self, tag: str) -> str:
        """All jobs with the tag, by seq."""
        return self.of(f"tag:{tag}")

    def records(self, kind: str) -> str:
        """The records of a kind, by name."""
        return self.of(f"records:{kind}")

    def spawned(self, parent_id: str) -> str:
        """All jobs that a job spawned, by seq."""
        return self.of(f"spawned:{parent_id}")


class Script:
    """One atomic step: its text, the hash the server knows it by, and the keys it is given."""

    def __init__(self, name: str) -> None:
        text = texts()[name]
        header = header_of(text)
        self.name = name
        self.parts = tuple(_in_order(header.get("uses", "").split()))
        self.key_names = tuple(header.get("keys", "").split())
        bound = ", ".join(f"{key} = KEYS[{n}]" for n, key in enumerate(self.key_names, start=1))
        shared = [parts()[part] for part in self.parts]
        self.text = "\n".join([f"local K = {{ {bound} }}", *shared, text])
        self.sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    def call(self, keys: Keys) -> tuple[str | int, ...]:
        """The EVALSHA command up to the arguments."""
        return ("EVALSHA", self.sha, len(self.key_names), *(keys.of(key) for key in self.key_names))


@cache
def texts() -> dict[str, str]:
    """Every script as it stands in its file, by name."""
    found: dict[str, str] = {}
    for text in _files("").values():
        _, *named = _SCRIPT.split(text)
        found |= zip(named[::2], named[1::2], strict=True)
    return found


@cache
def parts() -> dict[str, str]:
    """Every shared part, by name."""
    return _files("shared")


def header_of(text: str) -> dict[str, str]:
    """The labelled lines of the comment at the head of a script or part."""
    found: dict[str, str] = {}
    label = ""
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        if match := _LABEL.match(line):
            label = match[1]
            found[label] = match[2]
        elif label and (match := _CONTINUED.match(line)):
            found[label] += f" {match[1]}"
        else:
            label = ""
    return found


def _files(folder: str) -> dict[str, str]:
    files = sorted((_FOLDER / folder).iterdir(), key=lambda file: file.name)
    return {
        file.name.removesuffix(".lua"): file.read_text("utf-8")
        for file in files
        if file.name.endswith(".lua")
    }


def _in_order(names: Iterable[str]) -> list[str]:
    """These parts and those that they use, each once and after the ones it uses."""
    ordered: list[str] = []
    for name in names:
        used = _in_order(header_of(parts()[name]).get("uses", "").split())
        ordered += [part for part in (*used, name) if part not in ordered]
    return ordered
