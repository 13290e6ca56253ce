"""A receiver of webhooks on loopback, in this process, that answers as it is told to."""

from __future__ import annotations

import contextlib
import http.server
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple


class Request(NamedTuple):
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Behaviour = Callable[["Handler"], None]


def answers(status: int, **headers: str) -> Behaviour:
    def behave(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", "2")
        handler.end_headers()
        handler.wfile.write(b"ok")

    return behave


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[Request] = []
        self.connections = 0
        self.behaviours: list[Behaviour] = []
        """In turn; the last one stays."""
        self.asked = threading.Event()
        """Set by the first request."""
        self.over = threading.Event()
        """Set when the test ends: whoever stalls must stop."""
        self.broken = threading.Event()
        """Set when the other side hung up on a behaviour that was writing."""

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/done?x=1"

    def verify_request(self, request: object, client_address: object) -> bool:
        self.connections += 1
        return True

    def next(self) -> Behaviour:
        return self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the tests; nothing is printed."""


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append(Request(self.path, headers, body))
        self.server.asked.set()
        self.server.next()(self)

    def drip(self, piece: bytes, seconds: float = 0.02) -> None:
        """Write the piece again and again until the client hangs up, or the test ends."""
        try:
            while not self.server.over.wait(seconds):
                self.wfile.write(piece)
        except OSError:
            self.server.broken.set()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def running(*behaviours: Behaviour, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    server = Server()
    server.behaviours = list(behaviours) or [answers(200)]
    if tls is not None:
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
