"""Replacing contents of jobs by the same contents in another form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.stores.base import Rewrite
from headrace.stores.redis.connection import Argument, Server
from headrace.stores.redis.errors import text_refused
from headrace.stores.redis.rows import pack_payload
from headrace.stores.redis.scripts import Script

_REWRITE = Script("rewrite")

_JOBS_PER_CALL = 500
_BYTES_PER_CALL = 16_000_000


async def rewrite(server: Server, rewrites: Sequence[Rewrite]) -> list[bool]:
    """Each job stands alone, so a call takes as many as it can without holding others up for long."""
    with text_refused():
        pages = list(_pages([_arguments(one) for one in rewrites]))
    answers: list[bool] = []
    for page in pages:
        # The version fences a rewrite, and one made twice does what one does: it may be repeated.
        written = await server.read_script(_REWRITE, *(one for job in page for one in job))
        answers += (answer == 1 for answer in written)
    return answers


def _arguments(rewrite: Rewrite) -> list[str | bytes]:
    payload, message = rewrite.payload_json, rewrite.failure_message
    given = {
        "b": None if payload is None else pack_payload(payload),
        "r": rewrite.result_json,
        "c": rewrite.checkpoint_json,
        "l": rewrite.log_json,
        "f": None if message is None else message.encode(),
    }
    things = [(letter, value) for letter, value in given.items() if value is not None]
    head = [rewrite.job_id, str(rewrite.version), str(len(things))]
    return head + [part for thing in things for part in thing]


def _pages(jobs: Sequence[Sequence[str | bytes]]) -> Iterator[list[Sequence[Argument]]]:
    page: list[Sequence[Argument]] = []
    size = 0
    for job in jobs:
        page.append(job)
        size += sum(map(len, job))
        if len(page) >= _JOBS_PER_CALL or size >= _BYTES_PER_CALL:
            yield page
            page, size = [], 0
    if page:
        yield page
