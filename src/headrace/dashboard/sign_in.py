"""Signing in: a token goes into the session's cookie, which no script can read and no other site can use."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from headrace.dashboard.acts import Form
from headrace.dashboard.asked import View
from headrace.dashboard.links import Links
from headrace.dashboard.rendering import HEADERS, render, respond
from headrace.errors import TooManyRequests, Unauthenticated
from headrace.server.access import COOKIE, check_origin
from headrace.server.service import Service
from headrace.server.sessions import admit, cookie_with

FORM_BYTES_MAX = 10_000


def is_by_cookie(request: Request) -> bool:
    return COOKIE in request.cookies


async def serve(service: Service, request: Request, links: Links) -> Response:
    back = links.own(request.query_params.get("back")) or links.to("")
    if request.method != "POST":
        return _form(request, links, back)
    form = await Form.read(request, FORM_BYTES_MAX)
    secret = (form.word("token") or "").strip()
    try:
        await admit(service, request, secret)
    except Unauthenticated:
        return _form(request, links, back, "wrong")
    except TooManyRequests:
        return _form(request, links, back, "too often")
    return _with_cookie(back, cookie_with(request, links.root, secret))


def sign_out(request: Request, links: Links) -> Response:
    check_origin(request)
    return _with_cookie(links.to("sign-in"), cookie_with(request, links.root, "", 0))


def _with_cookie(place: str, cookie: str) -> Response:
    return RedirectResponse(place, status_code=303, headers=HEADERS | {"Set-Cookie": cookie})


def _form(request: Request, links: Links, back: str, refused: str | None = None) -> Response:
    status = {None: 200, "wrong": 401, "too often": 429}[refused]
    view = View(
        "sign_in.html",
        "Sign in",
        {"back": back, "refused": refused},
        status=status,
        every_seconds=None,
    )
    return respond(request, render(request, None, view, links))
