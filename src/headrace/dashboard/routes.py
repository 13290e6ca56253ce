"""Every page, act and file of the dashboard, as routes for the server's application to mount."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from headrace.dashboard import acts, assets, changes, sign_in
from headrace.dashboard.asked import Asked, View
from headrace.dashboard.links import Links
from headrace.dashboard.rendering import (
    HEADERS,
    SEEN,
    Rendered,
    is_fragment,
    render,
    respond,
)
from headrace.dashboard.shared import Shared
from headrace.dashboard.views import (
    audit,
    batches,
    bulk,
    content,
    errors,
    history,
    job,
    jobs,
    limits,
    overview,
    queues,
    schedules,
    search,
    system,
    tokens,
    workers,
)
from headrace.errors import (
    BatchNotFound,
    BulkActNotFound,
    Forbidden,
    HeadraceError,
    InvalidInput,
    JobNotFound,
    Refusal,
    ScheduleNotFound,
    StoreError,
    TooManyRequests,
    Unauthenticated,
)
from headrace.server.access import Access
from headrace.server.service import Service
from headrace.tokens import Scope

logger = logging.getLogger("headrace.dashboard")


class Page(NamedTuple):
    """One page: its address, what it shows, and who may see it."""

    path: str
    view: Callable[[Asked], Awaitable[View]]
    scope: Scope = Scope.READ
    for_operators: bool = False
    """Concerns every tenant."""


PAGES = (
    Page("/", overview.overview),
    Page("/jobs", jobs.jobs),
    Page("/job", job.job),
    Page("/errors", errors.errors),
    Page("/queues", queues.queues),
    Page("/queue", queues.queue),
    Page("/workers", workers.workers),
    Page("/worker", workers.worker),
    Page("/schedules", schedules.schedules),
    Page("/batches", batches.batches),
    Page("/batch", batches.batch),
    Page("/history", history.history),
    Page("/bulk", bulk.bulk_acts),
    Page("/bulk/new", bulk.new, Scope.OPERATE),
    Page("/bulk/act", bulk.bulk_act),
    Page("/audit", audit.audit),
    Page("/limits", limits.limits),
    Page("/system", system.system),
    Page("/tokens", tokens.tokens, Scope.ADMIN, for_operators=True),
)


def pages(service: Service) -> list[BaseRoute]:
    """What `create_app(…, pages=pages)` takes."""
    shared: Shared[Rendered] = Shared()
    return [
        *(Route(page.path, partial(_page, service, shared, page)) for page in PAGES),
        Route("/content", partial(_content, service)),
        Route("/search", partial(_search, service)),
        Route("/find", partial(_find, service)),
        Route("/changes", partial(_changes, service)),
        Route("/acts/{name}", partial(_act, service), methods=["POST"]),
        Route("/sign-in", partial(_sign_in, service), methods=["GET", "POST"]),
        Route("/sign-out", _sign_out, methods=["POST"]),
        Route("/assets/{version}/{name}", assets.serve),
        Route("/{rest:path}", partial(_nowhere, service)),
    ]


class Admitted(NamedTuple):
    """A request of somebody who is known."""

    access: Access
    asked: Asked


async def _admit(service: Service, request: Request) -> Admitted:
    access = await service.access(request)
    if access is None:
        raise Unauthenticated("sign in first")
    manager = await service.manager(access)
    tenant = request.query_params.get("tenant") or None
    if tenant is not None and access.tenant is None:
        manager = manager.scoped(tenant)
    else:
        tenant = None
    asked = Asked(
        manager=manager.acting_as(access.actor),
        scopes=access.scopes,
        links=Links(root_of(request), tenant),
        query=request.query_params,
        address=f"{request.url.scheme}://{request.url.netloc}{root_of(request)}",
        actor=access.actor,
        is_signed_in=sign_in.is_by_cookie(request),
    )
    return Admitted(access, asked)


def root_of(request: Request) -> str:
    return str(request.scope.get("root_path", "")).rstrip("/")


def _check(asked: Asked, access: Access, scope: Scope, *, for_operators: bool) -> None:
    if not asked.may(scope):
        raise Forbidden(f"this needs the scope {scope}, which your token does not have")
    if for_operators and access.tenant is not None:
        raise Forbidden("this concerns every tenant, and your token acts for one")


async def _page(
    service: Service, shared: Shared[Rendered], page: Page, request: Request
) -> Response:
    async def answer(admitted: Admitted) -> Response:
        asked = admitted.asked
        _check(asked, admitted.access, page.scope, for_operators=page.for_operators)

        async def rendered() -> Rendered:
            return render(request, asked, await page.view(asked), asked.links)

        place = request.headers.get(SEEN)
        if place is None or not is_fragment(request):
            return respond(request, await rendered())
        url = request.url
        key = (asked.manager.tenant, asked.scopes, asked.links, url.path, url.query, place)
        return respond(request, await shared.get(key, rendered))

    return await _answered(service, request, answer)


async def _content(service: Service, request: Request) -> Response:
    """All of a payload, result or checkpoint, as text: no browser takes it for a page."""

    async def answer(admitted: Admitted) -> Response:
        _check(admitted.asked, admitted.access, Scope.READ_PAYLOAD, for_operators=False)
        return PlainTextResponse(await content.whole(admitted.asked), headers=HEADERS)

    return await _answered(service, request, answer)


async def _search(service: Service, request: Request) -> Response:
    """From the field of the menu to the one thing that is meant, or to a choice."""

    async def answer(admitted: Admitted) -> Response:
        _check(admitted.asked, admitted.access, Scope.READ, for_operators=False)
        found = await search.search(admitted.asked)
        if isinstance(found, str):
            return RedirectResponse(found, status_code=303, headers=HEADERS)
        return respond(request, render(request, admitted.asked, found, admitted.asked.links))

    return await _answered(service, request, answer)


async def _find(service: Service, request: Request) -> Response:
    """The same for the palette, as JSON."""

    async def answer(admitted: Admitted) -> Response:
        _check(admitted.asked, admitted.access, Scope.READ, for_operators=False)
        hits = await search.hits(admitted.asked, admitted.asked.word("q") or "")
        return JSONResponse([hit._asdict() for hit in hits], headers=HEADERS)

    return await _answered(service, request, answer)


async def _changes(service: Service, request: Request) -> Response:
    async def answer(admitted: Admitted) -> Response:
        _check(admitted.asked, admitted.access, Scope.READ, for_operators=False)
        return await changes.stream(service, admitted.asked.manager, request)

    return await _answered(service, request, answer)


async def _act(service: Service, request: Request) -> Response:
    async def answer(admitted: Admitted) -> Response:
        asked = admitted.asked
        right = acts.ACTS.get(request.path_params["name"])
        if right is None:
            return await _nowhere(service, request)
        for scope in right.scopes:
            _check(asked, admitted.access, scope, for_operators=right.for_operators)
        form = await acts.Form.read(request, service.bounds.body_bytes_max)
        done = await right.act(asked, form)
        return RedirectResponse(done.address, status_code=303, headers=HEADERS)

    return await _answered(service, request, answer)


async def _sign_in(service: Service, request: Request) -> Response:
    links = Links(root_of(request))
    try:
        return await sign_in.serve(service, request, links)
    except HeadraceError as error:
        return _trouble(request, None, links, error)


async def _sign_out(request: Request) -> Response:
    links = Links(root_of(request))
    try:
        return sign_in.sign_out(request, links)
    except HeadraceError as error:
        return _trouble(request, None, links, error)


async def _nowhere(service: Service, request: Request) -> Response:
    async def answer(admitted: Admitted) -> Response:
        view = View(
            "trouble.html",
            "Nothing is here",
            {"told": "There is no such page.", "code": None, "is_away": False},
            status=404,
            every_seconds=None,
        )
        return respond(request, render(request, admitted.asked, view, admitted.asked.links))

    return await _answered(service, request, answer)


async def _answered(
    service: Service, request: Request, answer: Callable[[Admitted], Awaitable[Response]]
) -> Response:
    """The answer, or the page that says what is the matter."""
    links = Links(root_of(request))
    asked: Asked | None = None
    try:
        admitted = await _admit(service, request)
        asked, links = admitted.asked, admitted.asked.links
        return await answer(admitted)
    except Unauthenticated:
        if request.method != "GET":
            return RedirectResponse(links.to("sign-in"), status_code=303, headers=HEADERS)
        back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(links.to("sign-in", back=back), status_code=303, headers=HEADERS)
    except HeadraceError as error:
        return _trouble(request, asked, links, error)


_STATUS: Mapping[type[HeadraceError], int] = {
    JobNotFound: 404,
    BatchNotFound: 404,
    BulkActNotFound: 404,
    ScheduleNotFound: 404,
    Forbidden: 403,
    Refusal: 409,
    InvalidInput: 400,
    TooManyRequests: 429,
    StoreError: 503,
}


def _trouble(request: Request, asked: Asked | None, links: Links, error: HeadraceError) -> Response:
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    is_away = isinstance(error, StoreError)
    if is_away:
        logger.warning("%s %s: %s", request.method, request.url.path, error)
    titles = {
        403: "Not with your token",
        404: "Not found",
        409: "It was refused",
        503: "The store is away",
    }
    view = View(
        "trouble.html",
        titles.get(status, "That did not work"),
        {"told": error.message, "code": error.code, "is_away": is_away},
        status=status,
        every_seconds=2.0 if is_away else None,
    )
    # Without the store nothing is known of the viewer either: the page then stands without a menu.
    return respond(request, render(request, None if is_away else asked, view, links))


__all__ = ["pages"]
