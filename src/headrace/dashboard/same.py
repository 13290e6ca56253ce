"""The same view, or act, as a command line and as a request: to be copied into a shell. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec


class Same(NamedTuple):
    """What a view or an act is elsewhere."""

    title: str
    command: str | None = None
    curl: str | None = None


def command(*words: str, tenant: str | None = None, **options: str | Iterable[str] | None) -> str:
    """`headrace list --state dead`, quoted for a shell. Options stand before the other words' end."""
    line = ["headrace", *words]
    for name, value in options.items():
        if value is None:
            continue
        flag = f"--{name.replace('_', '-')}"
        for one in (value,) if isinstance(value, str) else value:
            line += [flag] if one == "" else [flag, one]
    if tenant is not None:
        line += ["--tenant", tenant]
    return " ".join(shlex.quote(word) for word in line)


def curl(
    address: str,
    path: str,
    *parts: str,
    method: str = "GET",
    body: Mapping[str, Any] | None = None,
    query: Mapping[str, str | Iterable[str] | None] | None = None,
) -> str:
    """The request to the interface of version 1; `parts` fill the `{}` of the path, encoded."""
    filled = path.format(*(quote(part, safe="") for part in parts))
    given = [
        (name, one)
        for name, value in (query or {}).items()
        if value is not None
        for one in ((value,) if isinstance(value, str) else value)
    ]
    url = f"{address}/api/v1{filled}" + (f"?{urlencode(given)}" if given else "")
    line = ["curl"]
    if method != "GET":
        line += ["-X", method]
    line += ["-H", "Authorization: Bearer $HEADRACE_TOKEN"]
    if body is not None:
        line += ["-H", "Content-Type: application/json", "-d", msgspec.json.encode(body).decode()]
    return " ".join(_quoted(word) for word in [*line, url])


def _quoted(word: str) -> str:
    """The token's variable must be filled in by the shell: double quotes around it."""
    return f'"{word}"' if "$HEADRACE_TOKEN" in word else shlex.quote(word)
