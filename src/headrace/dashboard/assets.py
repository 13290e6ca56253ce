"""Style sheets and scripts: served under the hash of their contents, so that browsers keep them for good."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

KINDS: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FOREVER = "public, max-age=31536000, immutable"
HASH_CHARS = 12


class Assets(NamedTuple):
    """All files of `static`, as they were when the process started."""

    version: str
    """One hash for all of them: modules import each other by name, so they change together."""
    files: MappingProxyType[str, tuple[str, bytes]]
    """By name: the media type, and the contents."""


@cache
def assets() -> Assets:
    files: dict[str, tuple[str, bytes]] = {}
    digest = hashlib.sha256()
    folder = resources.files("headrace.dashboard").joinpath("static")
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        kind = KINDS.get(f".{file.name.rpartition('.')[2]}")
        if kind is None:
            continue
        contents = file.read_bytes()
        digest.update(file.name.encode() + b"\0" + contents)
        files[file.name] = (kind, contents)
    return Assets(digest.hexdigest()[:HASH_CHARS], MappingProxyType(files))


async def serve(request: Request) -> Response:
    """`/assets/HASH/NAME`. Another hash is an older page's: it gets what there is now, uncached."""
    found = assets().files.get(request.path_params["name"])
    if found is None:
        return Response(status_code=404)
    kind, contents = found
    current = request.path_params["version"] == assets().version
    return Response(
        contents,
        media_type=kind,
        headers={
            "Cache-Control": FOREVER if current else "no-store",
            "X-Content-Type-Options": "nosniff",
        },
    )
