"""The Lua of this package: one file per atomic step, each with a header that is also read here.

A script's header names the shared parts it uses and the fixed keys it touches. The text that goes to
the server is: a table `K` of those keys, the shared parts, the script.
"""

from __future__ import annotations

import hashlib
import re
from importlib import resources

from headrace.stores.redis.keys import Keys

_FOLDER = resources.files("headrace.stores.redis") / "scripts"
_LABEL = re.compile(r"^-- (\w+) {2,}(.*)$")
_CONTINUED = re.compile(r"^-- {10}(\S.*)$")


class Script:
    """One atomic step: its text, the hash the server knows it by, and the keys it is given."""

    def __init__(self, name: str) -> None:
        text = (_FOLDER / f"{name}.lua").read_text("utf-8")
        header = _header(text)
        used = [
            (_FOLDER / "shared" / f"{part}.lua").read_text("utf-8")
            for part in header.get("uses", "").split()
        ]
        self.name = name
        self.key_names = tuple(header.get("keys", "").split())
        missing = {key for part in used for key in _header(part).get("keys", "").split()} - set(
            self.key_names
        )
        assert not missing, f"{name}.lua does not name keys that its parts use: {sorted(missing)}"
        bound = ", ".join(f"{key} = KEYS[{n}]" for n, key in enumerate(self.key_names, start=1))
        self.text = "\n".join([f"local K = {{ {bound} }}", *used, text])
        self.sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    def call(self, keys: Keys) -> tuple[str | int, ...]:
        """The EVALSHA command up to the arguments."""
        return ("EVALSHA", self.sha, len(self.key_names), *(keys.of(key) for key in self.key_names))


def _header(text: str) -> dict[str, str]:
    """The labelled lines of the comment at the head of a file."""
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
