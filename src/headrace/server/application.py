"""The ASGI application: finds the route, checks who asks, reads, calls the handler, and writes the answer.

It can be mounted under any prefix, and relies on no lifespan.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from headrace.api import problems
from headrace.api.route import TENANT_HEADER, Route
from headrace.app import Headrace
from headrace.errors import (
    Forbidden,
    HeadraceError,
    InvalidRequest,
    RequestTooLarge,
    RouteNotFound,
    StoreClosed,
)
from headrace.manager import JobManager
from headrace.server.access import SAFE_METHODS, Access, SignIn
from headrace.server.call import Call, Handler, Reply, Stream
from headrace.server.handlers import HANDLERS
from headrace.server.router import Router, segments_of
from headrace.server.service import Bounds, Service
from headrace.tokens import Scope as TokenScope

logger = logging.getLogger("headrace.server")

Pages = Callable[[Service], Sequence[BaseRoute]]
"""Makes the pages that stand beside the API."""

_JSON = "application/json"
_encoder = msgspec.json.Encoder()


def create_app(
    source: Headrace | JobManager | str,
    *,
    prefix: str = "",
    read_only: bool = False,
    open_to_all: bool = False,
    sign_in: SignIn | None = None,
    pages: Pages | None = None,
    bounds: Bounds | None = None,
) -> Application:
    """An ASGI application over a store's url, an application or a manager.

    It asks for tokens unless it is `open_to_all`, and then it answers to this machine only. `sign_in` is
    the host's own sign-in. `prefix` is where it stands if the host does not tell it (`root_path`).
    """
    service = Service(
        source, read_only=read_only, open_to_all=open_to_all, sign_in=sign_in, bounds=bounds
    )
    return Application(service, prefix=prefix.rstrip("/"), pages=pages)


class Application:
    """Serves the routes of the table, and hands everything else to the pages."""

    def __init__(self, service: Service, *, prefix: str = "", pages: Pages | None = None) -> None:
        self.service = service
        self._prefix = prefix
        self._router = Router(HANDLERS)
        self._pages = None if pages is None else Starlette(routes=list(pages(service)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._serve(scope, receive, send)
            case "lifespan":
                await self._live(receive, send)
            case _:
                await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
        """Where there is a lifespan, what was opened is given back at its end."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.service.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        segments = segments_of(scope, self._prefix)
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        found = None if segments is None else self._router.find(method, segments)
        if (
            found is None
            and self._pages is not None
            and segments is not None
            and segments[0] != "api"
        ):
            # The pages see where they are mounted in root_path, as any Starlette application does.
            inner = {**scope, "root_path": scope.get("root_path", "") + self._prefix}
            inner.setdefault("app_root_path", scope.get("root_path", ""))
            await self._pages(inner, receive, send)
            return
        root_path = scope.get("root_path", "") + self._prefix
        answer = Answering(self.service, root_path, scope, receive, send)
        await answer.run(found)


class Answering:
    """One request, from its route to the last byte of the answer."""

    def __init__(
        self, service: Service, root_path: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._service = service
        self._scope: MutableMapping[str, Any] = scope
        self._receive = receive
        self._send_message = send
        self._root_path = root_path
        self._started = False

    async def run(self, found: tuple[Mapping[str, Route], list[str]] | None) -> None:
        try:
            await self._answer(found)
        except HeadraceError as error:
            await self._problem(error)
        except ClientGone:
            return
        except Exception:
            if self._started:
                raise
            logger.exception("%s %s failed", self._scope["method"], self._scope["path"])
            body = problems.internal_problem(self._root_path)
            await self._write(500, _encoder.encode(body), problems.MEDIA_TYPE)

    async def _answer(self, found: tuple[Mapping[str, Route], list[str]] | None) -> None:
        if found is None:
            raise RouteNotFound(f"there is nothing at {self._scope['path']}")
        routes, values = found
        method = "GET" if self._scope["method"] == "HEAD" else self._scope["method"]
        route = routes.get(method)
        if route is None:
            allowed = ", ".join(sorted({*routes, *(["HEAD"] if "GET" in routes else [])}))
            error = RouteNotFound(f"{self._scope['path']} answers {allowed}, not {method}")
            await self._problem(error, status=405, headers=(("Allow", allowed),))
            return
        request = Request(self._scope, self._receive)
        access = await self._admit(route, request)
        service = self._service
        call: Call[Any, Any] = Call(
            service,
            route,
            request,
            root_path=self._root_path,
            access=access,
            manager=await self._manager(access, request, route.scopes),
            parameters=dict(zip(route.parameters, values, strict=True)),
            query=self._query(route),
            body=await self._body(route),
        )
        handler: Handler = HANDLERS[route]
        if route.waits:
            await self._reply(route, request, await self._unless_gone(handler(call)))
        else:
            await self._reply(route, request, await handler(call))

    async def _manager(
        self, access: Access | None, request: Request, scopes: Sequence[TokenScope]
    ) -> JobManager:
        if access is None:
            return await self._service.operator()
        manager = await self._service.manager(access)
        tenant = request.headers.get(TENANT_HEADER)
        if tenant is not None:
            if manager.tenant not in (None, tenant):
                raise Forbidden(f"the token does not act for the tenant that {TENANT_HEADER} names")
            manager = manager.scoped(tenant)
        # Acts by hand stand in the audit with who did them; what programs do all the time needs no name.
        by_hand = not {TokenScope.OPERATE, TokenScope.ADMIN}.isdisjoint(scopes)
        return manager.acting_as(access.named) if by_hand else manager

    async def _unless_gone(self, handling: Awaitable[Any]) -> Any:
        """What the handler gives. If whoever asked hangs up first, it is told to stop."""
        work = asyncio.ensure_future(handling)
        leaving = asyncio.create_task(self._gone())
        try:
            await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise ClientGone
            return work.result()
        finally:
            leaving.cancel()
            work.cancel()
            await asyncio.wait({work, leaving})

    async def _admit(self, route: Route, request: Request) -> Access | None:
        """Who asks; raises where that is nobody, or somebody who may not."""
        service = self._service
        if route.is_open:
            return None
        access = await service.signed_in(request)
        service.count_request(access)
        missing = [scope for scope in route.scopes if scope not in access.scopes]
        if missing:
            why = "the server is read-only" if service.read_only else "its token does not say so"
            raise Forbidden(f"this needs the scope {' and '.join(missing)}, and {why}")
        if route.for_operators and access.tenant is not None:
            raise Forbidden("this is for tokens that act for every tenant")
        return access

    def _query(self, route: Route) -> Any:
        given: dict[str, Any] = {}
        raw = self._scope.get("query_string", b"").decode("latin-1")
        if route.query is None:
            return None
        many = _many(route.query)
        try:
            pairs = parse_qsl(raw, keep_blank_values=True, errors="strict", max_num_fields=1000)
        except ValueError as error:
            raise InvalidRequest(f"the query cannot be read: {error}") from error
        for name, value in pairs:
            if name in many:
                given.setdefault(name, []).append(value)
            elif name in given:
                raise InvalidRequest(f"the query says {name} twice")
            else:
                given[name] = value
        try:
            return msgspec.convert(given, type=route.query, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidRequest(f"the query cannot be read: {error}") from error

    async def _body(self, route: Route) -> Any:
        if route.body is None:
            return None
        content_type = ""
        for name, value in self._scope["headers"]:
            if name == b"content-type":
                content_type = value.decode("latin-1").partition(";")[0].strip().lower()
        raw = await self._read()
        if not raw and route.body_optional:
            return route.body()
        if content_type not in ("", _JSON):
            # A form that another site sends must not pass for JSON.
            raise InvalidRequest(f"the body is {content_type}, not {_JSON}")
        try:
            return _decoder(route.body).decode(raw)
        except msgspec.DecodeError as error:
            raise InvalidRequest(f"the body cannot be read: {error}") from error
        except HeadraceError:
            raise
        except (UnicodeDecodeError, RecursionError) as error:
            raise InvalidRequest(f"the body cannot be read: {error}") from error

    async def _read(self) -> bytes:
        bounds = self._service.bounds
        size = 0
        chunks: list[bytes] = []
        try:
            async with asyncio.timeout(bounds.body_seconds_max):
                while True:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGone
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size > bounds.body_bytes_max:
                        raise RequestTooLarge(
                            f"the body has more than {bounds.body_bytes_max} bytes; nothing was stored"
                        )
                    chunks.append(chunk)
                    if not message.get("more_body", False):
                        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
        except TimeoutError as error:
            raise RequestTooLarge(
                f"the body took more than {bounds.body_seconds_max:g} s; nothing was stored"
            ) from error

    async def _reply(self, route: Route, request: Request, answer: Any) -> None:
        if isinstance(answer, Stream):
            await self._stream(answer)
            return
        reply = answer if isinstance(answer, Reply) else Reply(answer)
        status = reply.status or route.status
        media_type = reply.media_type or route.media_type
        if reply.body is None and route.answer is None and reply.media_type is None:
            await self._write(status, b"", "", reply.headers)
            return
        body = reply.body if isinstance(reply.body, bytes) else _encoder.encode(reply.body)
        headers = reply.headers
        if status == 200 and self._scope["method"] in SAFE_METHODS and media_type == _JSON:
            tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
            headers = (*headers, ("ETag", tag))
            if tag in request.headers.get("if-none-match", ""):
                await self._write(304, b"", "", headers)
                return
        await self._write(status, body, media_type, headers)

    async def _problem(
        self,
        error: HeadraceError,
        *,
        status: int | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        if self._started:
            return
        problem = problems.problem_of(error, self._root_path)
        if status is not None:
            problem["status"] = status
        if problem["status"] == 401:
            headers = (*headers, ("WWW-Authenticate", "Bearer"))
        seconds = problems.retry_after(error)
        if seconds is not None:
            headers = (*headers, ("Retry-After", str(seconds)))
        if problem["status"] >= 500 and not isinstance(error, StoreClosed):
            logger.warning("%s %s: %s", self._scope["method"], self._scope["path"], error)
        await self._write(problem["status"], _encoder.encode(problem), problems.MEDIA_TYPE, headers)

    async def _write(
        self,
        status: int,
        body: bytes,
        media_type: str,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        raw = [
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store" if status != 200 else b"private, no-cache"),
            (b"x-content-type-options", b"nosniff"),
        ]
        if media_type:
            raw.append((b"content-type", media_type.encode()))
        raw += [
            (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers
        ]
        if status in {304, 204}:
            raw = raw[1:]
        self._started = True
        await self._send_message({"type": "http.response.start", "status": status, "headers": raw})
        sent = b"" if self._scope["method"] == "HEAD" else body
        await self._send_message({"type": "http.response.body", "body": sent})

    async def _stream(self, answer: Stream) -> None:
        """Until it ends by itself or the reader has gone: then the pieces are told at once."""
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
            (b"x-content-type-options", b"nosniff"),
        ]
        # Where there is no room for it, the first piece raises: then the answer is a problem.
        first = await anext(answer.pieces)
        self._started = True
        await self._send_message({"type": "http.response.start", "status": 200, "headers": headers})
        sending = asyncio.create_task(self._send_pieces(first, answer))
        leaving = asyncio.create_task(self._gone())
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await sending

    async def _send_pieces(self, first: bytes, answer: Stream) -> None:
        await self._send_message({"type": "http.response.body", "body": first, "more_body": True})
        async with contextlib.aclosing(answer.pieces) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                await self._send_message(
                    {"type": "http.response.body", "body": piece, "more_body": True}
                )
        await self._send_message({"type": "http.response.body", "body": b""})

    async def _gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


class ClientGone(Exception):
    """Whoever asked has hung up."""


_decoders: dict[type, msgspec.json.Decoder[Any]] = {}
_lists: dict[type, frozenset[str]] = {}


def _decoder(kind: type) -> msgspec.json.Decoder[Any]:
    found = _decoders.get(kind)
    if found is None:
        found = _decoders[kind] = msgspec.json.Decoder(kind)
    return found


def _many(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The fields of a query that may be given several times."""
    found = _lists.get(kind)
    if found is None:
        found = _lists[kind] = frozenset(
            field.encode_name
            for field in msgspec.structs.fields(kind)
            if "tuple" in str(field.type)
        )
    return found
