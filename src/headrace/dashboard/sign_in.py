"""Signing in: a token goes into a cookie that no script can read, and that no other site can use."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from headrace.dashboard.acts import Form
from headrace.dashboard.asked import View
from headrace.dashboard.links import Links
from headrace.dashboard.rendering import HEADERS, render, respond
from headrace.server.access import COOKIE, check_origin, is_loopback
from headrace.server.service import Service

WRONG_SECONDS = 1.0
"""So long a wrong token waits for its answer."""
FORM_BYTES_MAX = 10_000


def is_by_cookie(request: Request) -> bool:
    return COOKIE in request.cookies


async def serve(service: Service, request: Request, links: Links) -> Response:
    back = links.own(request.query_params.get("back")) or links.to("")
    if request.method == "GET":
        return _form(request, links, back, wrong=False)
    check_origin(request)
    form = await Form.read(request, FORM_BYTES_MAX)
    secret = (form.word("token") or "").strip()
    access = await service.access_by_secret(secret)
    if access is None:
        await asyncio.sleep(WRONG_SECONDS)
        return _form(request, links, back, wrong=True)
    answer = RedirectResponse(back, status_code=303, headers=HEADERS)
    answer.set_cookie(
        COOKIE,
        secret,
        path=f"{links.root}/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https" or not is_loopback(request.url.hostname or ""),
    )
    return answer


def sign_out(links: Links) -> Response:
    answer = RedirectResponse(links.to("sign-in"), status_code=303, headers=HEADERS)
    answer.delete_cookie(COOKIE, path=f"{links.root}/", httponly=True, samesite="strict")
    return answer


def _form(request: Request, links: Links, back: str, *, wrong: bool) -> Response:
    view = View(
        "sign_in.html",
        "Sign in",
        {"back": back, "wrong": wrong},
        status=401 if wrong else 200,
        every_seconds=None,
    )
    return respond(request, render(request, None, view, links))
