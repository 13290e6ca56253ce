"""People sign in with a token, and their browser keeps it as a cookie that no script can read."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from headrace.api import administration as api
from headrace.errors import Unauthenticated
from headrace.server.access import COOKIE, Access, check_origin, is_loopback
from headrace.server.call import Call, Handlers, Reply

SESSION_SECONDS = 12 * 3600


async def sign_in(call: Call[None, api.SignInBody]) -> Reply:
    check_origin(call.request)
    address = call.request.client.host if call.request.client else ""
    call.service.failures.check(address)
    access = await call.service.access_by_secret(call.body.token.strip())
    if access is None:
        call.service.failures.note(address)
        raise Unauthenticated("this token is unknown, expired or revoked; nobody was signed in")
    cookie = _cookie(call, call.body.token.strip(), SESSION_SECONDS)
    return Reply(_answer(call, access), headers=(("Set-Cookie", cookie),))


async def sign_out(call: Call[None, None]) -> Reply:
    check_origin(call.request)
    return Reply(headers=(("Set-Cookie", _cookie(call, "", 0)),))


async def session(call: Call[None, None]) -> api.SessionAnswer:
    return _answer(call, call.access)


def _cookie(call: Call[Any, Any], secret: str, seconds: int) -> str:
    """Sent back to this server only, never with a request that another site has caused."""
    path = quote(call.root_path, safe="/") or "/"
    parts = [f"{COOKIE}={secret}", f"Path={path}", f"Max-Age={seconds}", "HttpOnly"]
    parts.append("SameSite=Strict")
    if call.request.url.scheme == "https" or not is_loopback(call.request.url.hostname or ""):
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
