"""From a view to a response: templates, the strict content policy, fragments and their ETags."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from functools import cache, partial
from typing import NamedTuple

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from headrace import duration
from headrace.dashboard import charts, words
from headrace.dashboard.asked import Asked, View
from headrace.dashboard.assets import assets
from headrace.dashboard.links import Links
from headrace.dashboard.navigation import SECTIONS
from headrace.dashboard.notices import notice_told
from headrace.model import State
from headrace.version import VERSION

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types headrace"
)
"""Nothing from elsewhere, nothing written into the page, and text becomes markup in one place only."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Headrace-Fragment, Cookie",
}
FRAGMENT = "headrace-fragment"
SEEN = "headrace-seen"
"""The request header that says up to which event a page has been told."""


def time_tag(at: datetime | None, style: str = "moment") -> Markup:
    """A moment: in UTC until the viewer's zone is known, and in UTC for whoever hovers.

    `style`: `moment` to the second, `clock` without the day, `ago` how long since, `age` the same in a word.
    """
    if at is None:
        return Markup('<span class="none">–</span>')
    return Markup('<time datetime="{}" data-style="{}" title="{}">{}</time>').format(
        words.iso(at), style, duration.stamp_ms(at), duration.stamp(at)
    )


def age_tag(at: datetime | None, now: datetime) -> Markup:
    """How long ago, which goes on counting on the page."""
    if at is None:
        return Markup('<span class="none">–</span>')
    return Markup('<time datetime="{}" data-style="age" title="{}">{}</time>').format(
        words.iso(at), duration.stamp_ms(at), duration.brief(max(0.0, (now - at).total_seconds()))
    )


def state_tag(state: State | str) -> Markup:
    """A state: its word, and a mark in its colour."""
    named = State(state)
    return Markup('<span class="state {}" title="{}">{}</span>').format(
        named.value, words.MEANINGS[named], named.value
    )


def odd(text: object) -> Markup:
    """A name as it is, whatever it is made of: its direction does not turn what stands beside it."""
    return Markup("<bdi>{}</bdi>").format(text)


_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z)")


def moments(text: str) -> Markup:
    """A sentence of the manager's, with the times in it as times: in the viewer's own zone."""
    found: list[Markup] = []
    end = 0
    for match in _MOMENT.finditer(text):
        found += (odd(text[end : match.start()]), time_tag(datetime.fromisoformat(match[0])))
        end = match.end()
    return Markup("").join([*found, odd(text[end:])])


@cache
def environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("headrace.dashboard"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": words.number,
        "compact": words.compact,
        "iso": words.iso,
        "size": words.size,
        "short_id": words.short_id,
        "seconds": duration.brief,
        "exact_seconds": duration.exact,
        "moments": moments,
        "odd": odd,
        "state": state_tag,
    }
    made.globals |= {
        "time": time_tag,
        "age": age_tag,
        "charts": charts,
        "states": words.ORDER,
        "meanings": words.MEANINGS,
        "version": VERSION,
    }
    return made


class Rendered(NamedTuple):
    """A page, or the changing part of one, as it is sent."""

    body: bytes
    etag: str
    status: int


def is_fragment(request: Request) -> bool:
    """A script asks for what changes, without the frame around it."""
    return request.headers.get(FRAGMENT) == "main"


def render(request: Request, asked: Asked | None, view: View, links: Links) -> Rendered:
    layout = "fragment.html" if is_fragment(request) else "page.html"
    body = _render(request, asked, view, links, layout=layout).encode("utf-8", "replace")
    return Rendered(body, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"', view.status)


def respond(request: Request, rendered: Rendered) -> Response:
    """304 where it is what the browser has."""
    headers = HEADERS | {"ETag": rendered.etag}
    is_known = request.headers.get("if-none-match") == rendered.etag
    if rendered.status == 200 and is_known:  # noqa: PLR2004 - OK
        return Response(status_code=304, headers=headers)
    return Response(
        rendered.body, status_code=rendered.status, media_type="text/html", headers=headers
    )


def _render(request: Request, asked: Asked | None, view: View, links: Links, *, layout: str) -> str:
    path = request.url.path.removeprefix(links.root).strip("/")
    now = None if asked is None else asked.now
    return (
        environment()
        .get_template(view.template)
        .render(
            layout=layout,
            view=view,
            asked=asked,
            links=links,
            to=links.to,
            asset=partial(_asset, links.root),
            sections=SECTIONS if asked is not None else (),
            here=path,
            now=now,
            ago=partial(age_tag, now=now or datetime.now(UTC)),
            notice=notice_told(
                request.query_params.get("notice"), request.query_params.get("about")
            ),
            topics=json.dumps(list(view.topics)),
            **view.data,
        )
    )


def _asset(root: str, name: str) -> str:
    return f"{root}/assets/{assets().version}/{name}"
