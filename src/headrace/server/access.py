"""Who asks: a token, a person signed in with one, or whoever can connect where the server is open to all."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import time
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime
from urllib.parse import urlsplit

import msgspec
from starlette.requests import HTTPConnection

from headrace.errors import Forbidden, TooManyRequests, Unauthenticated
from headrace.manager import JobManager
from headrace.tokens import Scope, Token
from headrace.validation import NAME_CHARS_MAX

COOKIE = "headrace_session"
KNOWN_SECONDS = 0.5
"""So long a token is taken for what it was: a revoked one is dead within a second, on every replica."""
KNOWN_TOKENS_MAX = 10_000
FAILURES_MAX = 10
"""Failed sign-ins of one address within a minute; then it must wait."""
FAILURES_SECONDS = 60.0
ADDRESSES_MAX = 10_000
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
READING = frozenset({Scope.READ, Scope.READ_PAYLOAD})


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a request acts for, and what it may do."""

    tenant: str | None
    """None: every tenant, as an operator."""
    scopes: frozenset[Scope]
    actor: str
    """Who it is, for people: the token's label, or what the host's own sign-in said."""
    token_id: str | None = None
    expires_at: datetime | None = None

    @property
    def named(self) -> str:
        """The actor as the audit knows it: printable, and no longer than a name may be."""
        printable = "".join(one for one in self.actor if one.isprintable()).strip()
        return printable[:NAME_CHARS_MAX] or self.token_id or "somebody"

    def may(self, *scopes: Scope) -> bool:
        return self.scopes.issuperset(scopes)

    @property
    def sees_contents(self) -> bool:
        """Payloads, results, logs and messages of errors."""
        return Scope.READ_PAYLOAD in self.scopes


SignIn = Callable[[HTTPConnection], Awaitable[Access | None]]
"""The host application's own sign-in: who sends this request, None for nobody that it knows."""

EVERYBODY = Access(tenant=None, scopes=frozenset(Scope), actor="anonymous")
"""Whoever can connect, where no token is asked for."""


def access_of(token: Token) -> Access:
    return Access(
        tenant=token.tenant,
        scopes=frozenset(token.scopes),
        actor=token.label,
        token_id=token.id,
        expires_at=token.expires_at,
    )


class Tokens:
    """Looks secrets up in the store, and remembers for a moment what it found. Good ones or not."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[float, asyncio.Task[Token | None]]] = {}

    async def find(self, manager: JobManager, secret: str) -> Token | None:
        """The token with this secret if it is good now."""
        digest = hashlib.sha256(secret.encode("utf-8", "replace")).digest()
        now = time.monotonic()
        asked_at, lookup = self._known.get(digest, (0.0, None))
        if (
            lookup is None
            or now - asked_at >= KNOWN_SECONDS
            or lookup.get_loop() is not asyncio.get_running_loop()
        ):
            if len(self._known) >= KNOWN_TOKENS_MAX:
                self._known.clear()
            lookup = asyncio.create_task(manager.token_of(secret))
            self._known[digest] = (now, lookup)
        token = await asyncio.shield(lookup)
        return token if token is not None and token.is_valid(manager.clock.now()) else None


def secret_in(connection: HTTPConnection) -> tuple[str | None, bool]:
    """The secret that the request shows, and whether a browser has sent it by itself, as a cookie."""
    kind, _, secret = connection.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and secret.strip():
        return secret.strip(), False
    return connection.cookies.get(COOKIE), True


def check_origin(connection: HTTPConnection) -> None:
    """A browser must not be led by another site to act with what it holds. Raises Forbidden."""
    if connection.scope["method"] in SAFE_METHODS:
        return
    headers = connection.headers
    site = headers.get("sec-fetch-site")
    if site is not None:
        allowed = site in ("same-origin", "none")
    else:
        origin = headers.get("origin")
        allowed = origin is None or urlsplit(origin).netloc == headers.get("host")
    if not allowed:
        raise Forbidden("the request comes from another site; nothing was changed")


def check_own_host(connection: HTTPConnection) -> None:
    """Open to whoever can connect means on this machine: no name of another site may lead here."""
    if not is_loopback(urlsplit(f"//{connection.headers.get('host', '')}").hostname or ""):
        raise Unauthenticated("without a token this server answers to localhost only")


def is_loopback(host: str) -> bool:
    """Whether the host can only be this machine itself."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Failures:
    """Failed sign-ins, by the address they came from."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}

    def check(self, address: str) -> None:
        """Raises TooManyRequests where there were too many."""
        times = self._times.get(address)
        now = time.monotonic()
        while times and now - times[0] > FAILURES_SECONDS:
            times.popleft()
        if times and len(times) >= FAILURES_MAX:
            raise TooManyRequests(
                "too many sign-ins have failed; nobody was signed in",
                retry_after=FAILURES_SECONDS - (now - times[0]),
            )

    def note(self, address: str) -> None:
        if len(self._times) >= ADDRESSES_MAX:
            self._times.clear()
        self._times.setdefault(address, deque()).append(time.monotonic())
