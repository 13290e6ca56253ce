"""What a worker process says of itself over HTTP: /live, /ready and /metrics.

A process that works answers from threads of its own, so that a handler which blocks the event loop does
not look like a death. A supervisor asks its processes, each on a Unix socket, and answers for all.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import http.client
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.worker.worker import Worker

SOCKET_VARIABLE = "HEADRACE_PROBE_SOCKET"
"""Where a supervised process answers its supervisor."""
STUCK_SECONDS = 60.0
"""An event loop that has not turned for so long will not turn again. Heartbeats do not depend on it."""
_STORE_SECONDS = 3.0
_ASK_SECONDS = 5.0
"""A supervisor waits longer for a process than the process for its store."""
_REQUEST_SECONDS = 10.0
_JSON = "application/json"


class Answer(msgspec.Struct, frozen=True):
    """`ok` decides the status code; the rest is for whoever reads the body."""

    ok: bool
    why: str | None = None
    processes: list[Answer | None] | None = None
    """Of a supervisor, one per process; null: it does not answer, or is being started again."""


class Probe(Protocol):
    """What can be asked of a worker, or of a supervisor of several."""

    def live(self) -> Answer:
        """Not so: nothing but a restart will help."""
        ...

    def ready(self) -> Answer:
        """It takes jobs, and its store answers."""
        ...

    def metrics(self, accept: str, *, store: bool) -> tuple[str, bytes] | None:
        """Content type and text, None where there are none. `store`: with what is read from there."""
        ...


class WorkerProbe:
    """One process that works. Live, but not ready, until it is attached to its worker."""

    def __init__(self, scrape: Callable[[str, bool], tuple[str, bytes]] | None = None) -> None:
        """`scrape`: content type and text of the metrics, for an Accept header, with those of the store."""
        self._scrape = scrape
        self._worker: Worker | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked_at: float | None = None
        """When the loop was asked to turn, and has not yet."""

    def attach(self, worker: Worker) -> None:
        """To the worker that the running event loop is about to run."""
        self._worker, self._loop = worker, asyncio.get_running_loop()

    def live(self) -> Answer:
        if self._loop is None:
            return Answer(ok=True)
        now = time.monotonic()
        asked_at = self._asked_at  # read once: the loop may turn at any moment
        if asked_at is None:
            self._asked_at = asked_at = now
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process is ending
                self._loop.call_soon_threadsafe(self._turned)
        stuck = now - asked_at
        if stuck < STUCK_SECONDS:
            return Answer(ok=True)
        return Answer(
            ok=False, why=f"a handler has blocked the event loop for at least {stuck:.0f} s"
        )

    def _turned(self) -> None:
        self._asked_at = None

    def ready(self) -> Answer:
        if self._worker is None or self._loop is None:
            return Answer(ok=False, why="the worker is starting")
        if self._worker.is_stopping:
            return Answer(ok=False, why="the worker is stopping")
        try:
            asked = asyncio.run_coroutine_threadsafe(self._worker.reach_store(), self._loop)
        except RuntimeError:
            return Answer(ok=False, why="the worker has ended")
        try:
            asked.result(_STORE_SECONDS)
        except concurrent.futures.TimeoutError:
            asked.cancel()
            return Answer(ok=False, why=f"the store has not answered for {_STORE_SECONDS:g} s")
        except HeadraceError as error:
            return Answer(ok=False, why=f"{type(error).__name__}: {error}")
        return Answer(ok=True)

    def metrics(self, accept: str, *, store: bool) -> tuple[str, bytes] | None:
        return None if self._scrape is None else self._scrape(accept, store)


class ProcessesProbe:
    """A supervisor: each of its processes is asked, and all of them must be well."""

    def __init__(
        self,
        sockets: Sequence[Path],
        merge: Callable[[str, Mapping[str, str]], tuple[str, bytes]] | None = None,
    ) -> None:
        """`merge` makes one scrape of those of several processes, by the process's number."""
        self._sockets = sockets
        self._merge = merge

    def live(self) -> Answer:
        answers = self._ask("/live")
        # One that does not answer has ended, and is started again.
        return _joint(answers, ok=all(one is None or one.ok for one in answers))

    def ready(self) -> Answer:
        answers = self._ask("/ready")
        return _joint(answers, ok=all(one is not None and one.ok for one in answers))

    def metrics(self, accept: str, *, store: bool) -> tuple[str, bytes] | None:
        if self._merge is None:
            return None
        texts: dict[str, str] = {}
        for number, path in enumerate(self._sockets):
            # What is in the store is asked of one of them, and not as often as there are processes.
            query = "/metrics?store" if store and not texts else "/metrics"
            answer = _get(path, query, _REQUEST_SECONDS)
            if answer is not None:
                texts[str(number)] = answer[1].decode()
        return self._merge(accept, texts)

    def _ask(self, what: str) -> list[Answer | None]:
        with concurrent.futures.ThreadPoolExecutor(len(self._sockets)) as pool:
            got = list(pool.map(lambda path: _get(path, what, _ASK_SECONDS), self._sockets))
        return [None if one is None else msgspec.json.decode(one[1], type=Answer) for one in got]


def _joint(answers: list[Answer | None], *, ok: bool) -> Answer:
    why = None
    if not ok:
        number, one = next((n, one) for n, one in enumerate(answers) if one is None or not one.ok)
        why = f"process {number}: " + ("no answer" if one is None else one.why or "not ready")
    return Answer(ok=ok, why=why, processes=answers)


# --- over HTTP -----------------------------------------------------------------------------------


@contextlib.contextmanager
def serving(probe: Probe, address: tuple[str, int] | Path, paths: frozenset[str]) -> Iterator[None]:
    """Answer GET requests for these paths in threads of its own. Raises OSError where it cannot listen."""
    server: socketserver.BaseServer
    handler = _handler(probe, paths)
    if isinstance(address, Path):
        server = _UnixServer(str(address), handler)
    else:
        server = _server_class(address[0])(address, handler)
    thread = threading.Thread(target=server.serve_forever, name="headrace-probes", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


class _UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


def _server_class(host: str) -> type[_Server]:
    return _Server6 if ":" in host else _Server


def _handler(probe: Probe, paths: frozenset[str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _REQUEST_SECONDS
        server_version = "headrace"
        sys_version = ""

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if path not in paths:
                self._send(404, _JSON, b'{"why":"there is nothing here"}')
            elif path == "/metrics":
                store = query == "store" or not isinstance(self.server, _UnixServer)
                scrape = probe.metrics(self.headers.get("Accept", ""), store=store)
                if scrape is None:
                    self._send(404, _JSON, b'{"why":"metrics are not collected here"}')
                else:
                    self._send(200, *scrape)
            else:
                answer = probe.live() if path == "/live" else probe.ready()
                self._send(200 if answer.ok else 503, _JSON, msgspec.json.encode(answer) + b"\n")

        do_HEAD = do_GET  # noqa: N815 - the name that the base class looks for

        def _send(self, code: int, content_type: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Probes come every few seconds: nobody reads that."""

    return Handler


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _get(path: Path, what: str, seconds: float) -> tuple[int, bytes] | None:
    """Status and body; None where nobody answers, or says nothing that can be used."""
    connection = _UnixConnection(path, seconds)
    try:
        connection.request("GET", what)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException):
        return None
    else:
        return None if response.status == http.client.NOT_FOUND else (response.status, body)
    finally:
        connection.close()
