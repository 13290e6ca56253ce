"""People sign in with a token, and their browser keeps it as a cookie that no script can read."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from headrace.api import administration as api
from headrace.errors import Unauthenticated
from headrace.server.access import COOKIE, Access, check_origin, is_loopback
from headrace.server.call import Call, Handlers, Reply
from headrace.server.service import Service

SESSION_SECONDS = 12 * 3600


async def admit(service: Service, request: Request, secret: str) -> Access:
    """Whoever signs in with this secret; whoever guesses has to wait. Raises what is wrong."""
    check_origin(request)
    address = request.client.host if request.client else ""
    service.failures.check(address)
    access = await service.access_by_secret(secret)
    if access is None:
        service.failures.note(address)
        raise Unauthenticated("this token is unknown, expired or revoked; nobody was signed in")
    return access


async def sign_in(call: Call[None, api.SignInBody]) -> Reply:
    secret = call.body.token.strip()
    access = await admit(call.service, call.request, secret)
    cookie = cookie_with(call.request, call.root_path, secret)
    return Reply(_answer(call, access), headers=(("Set-Cookie", cookie),))


async def sign_out(call: Call[None, None]) -> Reply:
    check_origin(call.request)
    return Reply(headers=(("Set-Cookie", cookie_with(call.request, call.root_path, "", 0)),))


async def session(call: Call[None, None]) -> api.SessionAnswer:
    return _answer(call, call.access)


def cookie_with(
    request: Request, root_path: str, secret: str, seconds: int = SESSION_SECONDS
) -> str:
    """Sent back to this server only, never with a request that another site has caused."""
    path = quote(root_path, safe="/") or "/"
    parts = [f"{COOKIE}={secret}", f"Path={path}", f"Max-Age={seconds}", "HttpOnly"]
    parts.append("SameSite=Strict")
    if request.url.scheme == "https" or not is_loopback(request.url.hostname or ""):
        parts.append("Secure")
    return "; ".join(parts)


def _answer(call: Call[Any, Any], access: Access) -> api.SessionAnswer:
    return api.SessionAnswer(
        actor=access.actor,
        tenant=access.tenant,
        scopes=tuple(sorted(access.scopes)),
        expires_at=access.expires_at,
        read_only=call.service.read_only,
    )


HANDLERS: Handlers = {
    api.SIGN_IN: sign_in,
    api.SIGN_OUT: sign_out,
    api.SESSION: session,
}
