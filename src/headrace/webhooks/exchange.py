"""One request and its answer, on a connection to an address that was looked at before.

Blocking, in a thread: the standard library's client reads the answer. It is given a connection rather
than a name, so that nothing is resolved twice, no proxy of the environment is asked, and no redirect is
followed. Whatever the other side does, it is over when the time is up, and little is read of the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

T = TypeVar("T")

Dial = Callable[[str, int, float], socket.socket]
"""From a numeric address, a port and a time limit to a connection. Blocks; raises OSError."""

_THREADS = 64
_LATE = "the time for the request was up"
_PORTS = {"https": 443, "http": 80}


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a receiver may take, and how much it may say."""

    resolve_seconds: float = 5.0
    connect_seconds: float = 5.0
    """For each address that is tried."""
    read_seconds: float = 15.0
    """For each part of the answer."""
    total_seconds: float = 20.0
    """From dialling to the end."""
    drain_seconds: float = 1.0
    """For the body, which nobody reads: it is let through so that a receiver is not cut off."""
    body_bytes_max: int = 64 * 1024


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where a url leads."""

    secure: bool
    host: str
    port: int
    netloc: str
    path: str

    @classmethod
    def of(cls, url: str) -> Target:
        """Of a checked url."""
        parts = urlsplit(url)
        assert parts.hostname is not None
        return cls(
            secure=parts.scheme == "https",
            host=parts.hostname,
            port=parts.port or _PORTS[parts.scheme],
            netloc=parts.netloc,
            path=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        )


class Answer(msgspec.Struct, frozen=True):
    status: int
    retry_after: str | None


class Exchange:
    """A POST to the first of the addresses that can be reached."""

    def __init__(
        self,
        target: Target,
        addresses: Sequence[str],
        headers: Mapping[str, str],
        body: bytes,
        *,
        limits: Limits,
        dial: Dial,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._target = target
        self._addresses = addresses
        self._headers = headers
        self._body = body
        self._limits = limits
        self._dial = dial
        self._tls = tls
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._aborted = False
        self._end = time.monotonic() + limits.total_seconds

    def run(self) -> Answer:
        """Raises OSError or HTTPException; TimeoutError when the time was up."""
        try:
            with contextlib.closing(self._connected()) as connection:
                return self._request(connection)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if self._aborted:
                raise TimeoutError(_LATE) from error
            raise

    def abort(self) -> None:
        """Break off, from any thread: whoever waits for the other side stops waiting."""
        with self._lock:
            self._aborted = True
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    # Not the TLS socket's own way to shut down, which is not made for two threads.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _connected(self) -> socket.socket:
        plain = self._hold(self._reached())
        plain.settimeout(self._limits.read_seconds)
        if not self._target.secure:
            return plain
        context = self._tls or default_tls()
        # Held before it shakes hands: that, too, is waiting for the other side.
        secure = context.wrap_socket(
            plain, server_hostname=self._target.host, do_handshake_on_connect=False
        )
        self._hold(secure)
        try:
            secure.do_handshake()
        except BaseException:
            secure.close()
            raise
        return secure

    def _reached(self) -> socket.socket:
        last: OSError = OSError("there is no address to dial")
        for address in self._addresses:
            left = min(self._limits.connect_seconds, self._end - time.monotonic())
            if left <= 0 or self._aborted:
                break
            try:
                return self._dial(address, self._target.port, left)
            except OSError as error:
                last = error
        raise last

    def _hold(self, connection: socket.socket) -> socket.socket:
        with self._lock:
            self._socket = connection
            if self._aborted:
                connection.close()
                raise TimeoutError(_LATE)
        return connection

    def _request(self, connection: socket.socket) -> Answer:
        client = http.client.HTTPConnection(self._target.host, self._target.port)
        client.auto_open = 0  # this connection or none
        client.sock = connection
        headers = {**self._headers, "Host": self._target.netloc, "Connection": "close"}
        client.request("POST", self._target.path, self._body, headers)
        with contextlib.closing(client.getresponse()) as response:
            if self._aborted:
                # The client takes a connection that ends among the headers for the end of the headers.
                raise TimeoutError(_LATE)
            answer = Answer(response.status, response.headers.get("Retry-After"))
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                self._drain(connection, response)
        return answer

    def _drain(self, connection: socket.socket, response: http.client.HTTPResponse) -> None:
        end = time.monotonic() + self._limits.drain_seconds
        left = self._limits.body_bytes_max
        while left > 0 and (seconds := end - time.monotonic()) > 0:
            connection.settimeout(seconds)
            chunk = response.read1(min(left, 8192))
            if not chunk:
                return
            left -= len(chunk)


def dial(address: str, port: int, seconds: float) -> socket.socket:
    """The address is numeric, so that nothing is resolved here."""
    return socket.create_connection((address, port), timeout=seconds)


async def post(exchange: Exchange, limits: Limits) -> Answer:
    """Run it, and leave no connection behind, not even when cancelled."""
    timer = asyncio.get_running_loop().call_later(limits.total_seconds, exchange.abort)
    try:
        return await in_thread(exchange.run, None)
    finally:
        timer.cancel()
        exchange.abort()


async def in_thread(work: Callable[[], T], seconds: float | None) -> T:
    """In threads of our own: slow receivers must not keep others from the loop's few.

    What takes longer than `seconds` is left behind, with TimeoutError.
    """
    return await asyncio.wait_for(
        asyncio.get_running_loop().run_in_executor(_threads(), work), seconds
    )


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="headrace-webhook")


@functools.cache
def default_tls() -> ssl.SSLContext:
    """Verifies the chain and the host's name. Kept, since reading the authorities takes time."""
    return ssl.create_default_context()
