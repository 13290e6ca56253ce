"""`headrace serve`: the store over HTTP, and the dashboard where it is installed."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from typing import Any

import click

from headrace.app import Headrace
from headrace.cli.exits import Exit, one_line
from headrace.cli.session import current_settings, key_ring
from headrace.cli.settings import Settings, command
from headrace.errors import HeadraceError, InvalidInput

DEFAULT_PORT = 8300
_MISSING = "the server needs {name}, which is not installed: pip install 'headrace[server]'"
_LEVELS = ("debug", "info", "warning", "error")
_BACKLOG = 2048
KEEP_ALIVE_SECONDS = 75
"""Longer than clients keep a connection that is idle: none is closed under a request."""


@command(
    "serve",
    examples=(
        "headrace serve --open",
        "headrace serve postgresql://localhost/jobs --port 8300",
        "headrace serve --app jobs:app --host 0.0.0.0 --read-only",
    ),
)
@click.argument("store", metavar="[URL]", required=False)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--app",
    "place",
    metavar="MODULE:APP",
    help="The application whose store and policies count.  [default: the url, default policies]",
)
@click.option("--prefix", default="", metavar="PATH", help="Where a proxy in front has it.")
@click.option("--read-only", is_flag=True, help="Nothing can be changed, whatever a token says.")
@click.option("--open", "open_browser", is_flag=True, help="Show the dashboard in a browser.")
@click.option(
    "--no-tokens",
    "open_to_all",
    is_flag=True,
    help="Ask for no token even if there are some. On this machine only.",
)
@click.option(
    "--no-maintenance", is_flag=True, help="Leave leases, schedules and retention to workers."
)
@click.option("--log-level", type=click.Choice(_LEVELS), default="info", show_default=True)
@click.option("--log-json", is_flag=True, help="Log one JSON object per line.")
def serve(
    *,
    store: str | None,
    host: str,
    port: int,
    place: str | None,
    prefix: str,
    read_only: bool,
    open_browser: bool,
    open_to_all: bool,
    no_maintenance: bool,
    log_level: str,
    log_json: bool,
) -> Exit:
    """Serve the store over HTTP: /api/v1 for programs in any language, and pages for people.

    Whoever asks shows a token of `headrace token create`. As long as there is none, programs of this
    machine need none; on any other address the server does not start without.
    """
    _require("starlette", "uvicorn", "httptools")
    from headrace.server import create_app
    from headrace.server.access import is_loopback
    from headrace.worker.logs import configure

    configure(as_json=log_json, level=log_level)
    app = _application(store, place)
    has_tokens = asyncio.run(_has_tokens(app))
    if not is_loopback(host):
        if open_to_all:
            raise click.UsageError(f"--no-tokens is for this machine only, and {host} is not")
        if not has_tokens:
            raise InvalidInput(
                f"there is no token yet, and whoever reaches {host} could do everything; nothing was "
                "started: create one with headrace token create"
            )
    is_open = open_to_all or not has_tokens
    with _listening(host, port) as listener:
        port = listener.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{port}{prefix}/"
        click.echo(
            f"serving {_shown(app)} at {address} "
            f"({'no token needed on this machine' if is_open else 'tokens needed'}"
            f"{', read-only' if read_only else ''})"
        )
        application = create_app(
            app,
            prefix=prefix,
            read_only=read_only,
            open_to_all=is_open,
            pages=_pages(),
        )
        if open_browser:
            threading.Thread(target=_open_browser, args=(address,), daemon=True).start()
        return _run(application, listener, log_level, maintenance=not (no_maintenance or read_only))


def _open_browser(address: str) -> None:
    """In a thread of its own: some browsers are waited for."""
    if not webbrowser.open(address):
        click.echo(f"no browser can be opened here: visit {address}", err=True)


def _application(store: str | None, place: str | None) -> Headrace:
    settings = current_settings()
    if place is None:
        app = Headrace(store or settings.url, tenant=settings.tenant)
    else:
        from headrace.worker.loading import load_app

        app = load_app(place)
        if store is not None or settings.url_named:
            app.url = store or settings.url
        if settings.tenant is not None:
            app.tenant = settings.tenant
    app.keys = key_ring(settings) or app.keys
    return app


async def _has_tokens(app: Headrace) -> bool:
    """Whether somebody has made one that is good; it also shows that the store answers."""
    async with await app.connect() as manager:
        now = manager.clock.now()
        return any(token.is_valid(now) for token in await manager.list_tokens())


def _shown(app: Headrace) -> str:
    return one_line(Settings(url=app.url).shown_url)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise HeadraceError(
            f"cannot listen on {host}:{port}: {error.strerror}; nothing was started"
        ) from error
    return listener


def _pages() -> Callable[[Any], Sequence[Any]] | None:
    """The dashboard's, where its package is there."""
    try:
        dashboard = importlib.import_module("headrace.dashboard")
    except ModuleNotFoundError as error:
        if error.name != "headrace.dashboard":
            raise
        return None
    pages: Callable[[Any], Sequence[Any]] = dashboard.pages
    return pages


def _run(application: Any, listener: socket.socket, log_level: str, *, maintenance: bool) -> Exit:
    import uvicorn

    from headrace.maintenance import Maintenance

    config = uvicorn.Config(
        application,
        http="httptools",
        log_level="warning" if log_level == "info" else log_level,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        proxy_headers=False,
    )
    server = uvicorn.Server(config)

    async def run() -> None:
        """Workers over HTTP do no maintenance: whoever serves them does."""
        stop = asyncio.Event()
        manager = await application.service.operator()
        upkeep = None
        if maintenance and manager.tenant is None:
            upkeep = asyncio.create_task(Maintenance(manager).run(stop))
        try:
            await server.serve(sockets=[listener])
        finally:
            stop.set()
            if upkeep is not None:
                await asyncio.wait({upkeep}, timeout=5)
            await application.service.close()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())
    return Exit.OK


def _require(*names: str) -> None:
    for name in names:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise HeadraceError(_MISSING.format(name=name)) from error
