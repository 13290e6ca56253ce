"""What all requests of a server share: the store, who asks, the log's fan-out, and its bounds."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from weakref import WeakKeyDictionary

import msgspec
from starlette.requests import HTTPConnection

from headrace.app import Headrace
from headrace.app.connections import Connections
from headrace.codec import PAYLOAD_BYTES_MAX
from headrace.errors import TooManyRequests, Unauthenticated
from headrace.manager import JobManager
from headrace.server.access import (
    EVERYBODY,
    KNOWN_TOKENS_MAX,
    READING,
    Access,
    Failures,
    SignIn,
    Tokens,
    access_of,
    check_origin,
    check_own_host,
    secret_in,
)
from headrace.server.hub import Hub
from headrace.stores.base import JobStore


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What one request, and one token, may ask of the server."""

    body_bytes_max: int = PAYLOAD_BYTES_MAX + (1 << 20)
    body_seconds_max: float = 30.0
    """A body that comes more slowly is given up."""
    page_jobs_max: int = 1000
    batch_jobs_max: int = 1000
    streams_max: int = 1000
    """Event streams at once, in all."""
    token_streams_max: int = 100
    waits_max: int = 5000
    """Waits and claims that wait, in all."""
    token_requests_per_second: float | None = None
    """None: as many as come."""


class Allowance:
    """So many requests a second, and twice as many at once after a quiet time."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._left = 2 * per_second
        self._seen_at = time.monotonic()

    def take(self) -> None:
        now = time.monotonic()
        self._left = min(
            2 * self._per_second, self._left + (now - self._seen_at) * self._per_second
        )
        self._seen_at = now
        if self._left < 1:
            raise TooManyRequests(
                f"this token may ask {self._per_second:g} times a second; nothing was changed",
                retry_after=(1 - self._left) / self._per_second,
            )
        self._left -= 1


class Service:
    """Opens the store when the first request comes, on whatever event loop that is.

    It relies on no lifespan: mounted applications often have none. Jobs are made by the policies of the
    application it is given; a url stands for one with the default policies.
    """

    def __init__(
        self,
        source: Headrace | JobManager | str,
        *,
        read_only: bool = False,
        open_to_all: bool = False,
        sign_in: SignIn | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self._connections: Connections | None = None
        self._given: JobManager | None = None
        self.app: Headrace | None = None
        if isinstance(source, JobManager):
            self._given = source
        else:
            self.app = Headrace(source) if isinstance(source, str) else source
            self._connections = Connections(self._open)
        self.read_only = read_only
        self.open_to_all = open_to_all
        self.bounds = bounds or Bounds()
        self._sign_in = sign_in
        self._tokens = Tokens()
        self.failures = Failures()
        self._hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()
        self._allowances: dict[str | None, Allowance] = {}
        self._streams: Counter[str | None] = Counter()

    async def _open(self, store: JobStore | None) -> JobManager:
        assert self.app is not None
        return await self.app.connect(store)

    async def close(self) -> None:
        """Give back what it has opened on the running loop. The next request opens it again."""
        hub = self._hubs.pop(asyncio.get_running_loop(), None)
        if hub is not None:
            await hub.close()
        if self._connections is not None:
            await self._connections.close()

    @property
    def hub(self) -> Hub:
        """The fan-out of the log, on the running event loop."""
        loop = asyncio.get_running_loop()
        hub = self._hubs.get(loop)
        if hub is None:
            hub = self._hubs[loop] = Hub(
                self.operator,
                waits_max=self.bounds.waits_max,
                streams_max=self.bounds.streams_max,
            )
        return hub

    async def operator(self) -> JobManager:
        """The manager of the server itself, which sees every tenant (or the one it was given for)."""
        if self._given is not None:
            return self._given
        assert self._connections is not None
        return await self._connections.get()

    async def manager(self, access: Access) -> JobManager:
        """The manager to serve this request with: it reaches the tenant of the access, and no other."""
        manager = await self.operator()
        return manager if access.tenant is None else manager.scoped(access.tenant)

    async def access(self, request: HTTPConnection) -> Access | None:
        """Who sends the request: by its bearer token, session cookie, or the host's own sign-in.

        None for nobody that is known. Raises Forbidden where a browser was led here by another site.
        """
        found = await self._find(request)
        if found is None or not self.read_only:
            return found
        return msgspec.structs.replace(found, scopes=found.scopes & READING)

    async def _find(self, request: HTTPConnection) -> Access | None:
        if self._sign_in is not None:
            access = await self._sign_in(request)
            if access is not None:
                check_origin(request)
                return access
        secret, by_browser = secret_in(request)
        if secret is not None:
            access = await self.access_by_secret(secret)
            if access is not None and by_browser:
                check_origin(request)
            if access is not None or not by_browser:
                return access
        if self.open_to_all:
            check_own_host(request)
            check_origin(request)
            return msgspec.structs.replace(EVERYBODY, tenant=(await self.operator()).tenant)
        return None

    async def access_by_secret(self, secret: str) -> Access | None:
        """Whoever shows this secret; None if it opens nothing."""
        manager = await self.operator()
        token = await self._tokens.find(manager, secret)
        if token is None or manager.tenant not in (None, token.tenant):
            return None
        return access_of(token)

    async def signed_in(self, request: HTTPConnection) -> Access:
        """The same, or Unauthenticated."""
        access = await self.access(request)
        if access is None:
            raise Unauthenticated("show a token that is good: Authorization: Bearer hdr_…")
        return access

    @contextlib.contextmanager
    def streams_of(self, access: Access) -> Iterator[None]:
        """Around one event stream. Raises TooManyRequests where the token has too many."""
        key = access.token_id
        if self._streams[key] >= self.bounds.token_streams_max and key is not None:
            raise TooManyRequests(f"this token has {self._streams[key]} streams open already")
        self._streams[key] += 1
        try:
            yield
        finally:
            self._streams[key] -= 1
            if not self._streams[key]:
                del self._streams[key]

    def count_request(self, access: Access) -> None:
        """Raises TooManyRequests where the token has asked more often than it may."""
        allowance = self._allowances.get(access.token_id)
        if allowance is None:
            rate = self.bounds.token_requests_per_second
            if rate is None:
                return
            if len(self._allowances) >= KNOWN_TOKENS_MAX:
                self._allowances.clear()
            allowance = self._allowances[access.token_id] = Allowance(rate)
        allowance.take()
