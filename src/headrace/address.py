"""Urls of stores: the one that is meant when none is given, how others spell them, and what may be shown.

Whoever prints a url, or a text that may quote one, goes through `shown` or `scrubbed`: nothing else decides
what of it is a secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from headrace.errors import UnknownStore

VARIABLE = "HEADRACE_URL"
"""Where the environment may name the store, for programs, workers and the command line alike."""
DEFAULT_URL = "sqlite:///headrace.db"
URL_CHARS_MAX = 4096

_SPELLINGS: Mapping[str, str] = {
    "memory": "memory",
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "redis": "redis",
    "rediss": "rediss",
    "redis+unix": "unix",
    "redis+socket": "unix",
    "unix": "unix",
}
SCHEMES = frozenset(_SPELLINGS)
SERVER_SCHEMES = frozenset({"http", "https"})
"""Of urls that lead to `headrace serve`, not to a store."""
TOKEN_VARIABLE = "HEADRACE_TOKEN"  # noqa: S105 - the name of a variable
"""Where the environment may hold the token for a server."""

_SERVERS = frozenset({"postgresql", "redis", "rediss"})
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[^:\[\]@\s]*)(?::\d{1,5})?")
_PLACE = re.compile(r"[\w./~-]+:?")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_QUOTED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:?//?[^\s'\"]*[^\s'\".,;:)]")
_PASSWORD = re.compile(r"(?i)((?:password|passwd|sslpassword)\s*[=:]\s*)[^\s&'\",;]+")
_HIDDEN = "…"
_ADVICE = "percent-encode what is special in a user name or a password (@ is %40, / is %2F)"


class Parts(NamedTuple):
    """A url, taken apart; nothing of it is decoded."""

    scheme: str
    """One that a store answers to, or whatever was given."""
    user: str
    """User and password, without the @. Secret."""
    hosts: str
    """With their ports; several are separated by commas."""
    path: str
    query: str


def default_url() -> str:
    """The store that is meant when none is named: that of the environment, or a file in this folder."""
    return os.environ.get(VARIABLE, "").strip() or DEFAULT_URL


def is_server(url: object) -> bool:
    """Whether it leads to a server rather than a store."""
    return scheme_of(url) in SERVER_SCHEMES


def split(url: object) -> Parts:
    """Take a url apart; SQLAlchemy's spellings (`postgresql+asyncpg://`) are those of the plain store.

    Raises UnknownStore, which shows nothing that may be a secret.
    """
    text = _text(url)
    parts = _urlsplit(text)
    if parts is None:
        raise UnknownStore(f"{shown(text)} is not a url; nothing was opened: {_ADVICE}")
    scheme = _scheme(parts.scheme)
    if scheme in _SERVERS and "://" not in text:
        raise UnknownStore(
            f"{shown(text)} names no server: write {scheme}://host; nothing was opened"
        )
    user, _, hosts = parts.netloc.rpartition("@")
    for host in hosts.split(","):
        if not _HOST.fullmatch(host) or int(host.rpartition("]")[2].partition(":")[2] or 0) > 65535:  # noqa: PLR2004 - the last port
            raise UnknownStore(
                f"the host or the port of {shown(text)} cannot be read; nothing was opened: {_ADVICE}"
            )
    return Parts(scheme, user, hosts, parts.path, parts.query)


def scheme_of(url: object) -> str:
    """As it is written, of anything at all; "" where there is none."""
    found = _SCHEME.match(str.__str__(url)) if isinstance(url, str) else None
    return found[1].lower() if found else ""


def joined(parts: Parts) -> str:
    """The url that `split` takes apart so: in the plain store's spelling."""
    authority = f"{parts.user.replace('@', '%40')}@{parts.hosts}" if parts.user else parts.hosts
    query = f"?{parts.query}" if parts.query else ""
    slashes = "" if parts.scheme == "memory" else "//"
    return f"{parts.scheme}:{slashes}{authority}{parts.path}{query}"


def shown(url: object) -> str:
    """The url for people: without user, password and options. Where it cannot be told apart, without more."""
    if not isinstance(url, str):
        return f"a {type(url).__name__}"
    url = str.__str__(url)
    parts = _urlsplit(url)
    if parts is not None and "://" in url:
        rest = f"{parts.path}?{parts.query}#{parts.fragment}"
        hosts = parts.netloc.rpartition("@")[2]
        # An @ further on: a password with a slash in it, of which the host would be the beginning.
        is_plain = all(_HOST.fullmatch(host) for host in hosts.split(","))
        if is_plain and ("@" not in rest or not parts.netloc):
            return _printable(f"{parts.scheme}://{hosts}{parts.path}")
    elif _PLACE.fullmatch(url):
        return url
    scheme = _SCHEME.match(url)
    return f"{scheme[1]}:{'//' if '://' in url else ''}{_HIDDEN}" if scheme else _HIDDEN


def scrubbed(text: str) -> str:
    """A text of a driver or a shell: of each url that it quotes, only what may be shown."""
    told = _QUOTED.sub(lambda found: _shown_if_url(found[0]), text)
    return _PASSWORD.sub(rf"\1{_HIDDEN}", told)


def _shown_if_url(text: str) -> str:
    return shown(text) if ":/" in text else text


def _text(url: object) -> str:
    if not isinstance(url, str):
        raise UnknownStore(
            f"the url of a store is text, not {type(url).__name__}; nothing was opened"
        )
    url = str.__str__(url)
    if not url.strip() or len(url) > URL_CHARS_MAX or not url.isprintable():
        raise UnknownStore(
            f"the url of a store is 1 to {URL_CHARS_MAX} printable characters; nothing was opened"
        )
    return url


def _urlsplit(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:  # it would quote the part with the password
        return None


def _scheme(given: str) -> str:
    """`postgresql+asyncpg` names a driver of another library; which one we use is ours to choose."""
    return _SPELLINGS.get(given) or _SPELLINGS.get(given.partition("+")[0], given)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else _HIDDEN for c in text)
