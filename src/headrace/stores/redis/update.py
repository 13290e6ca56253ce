"""Writing what a job's user says of it, putting contents into another form, and deleting jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headrace.model import Change
from headrace.stores.base import Rewrite
from headrace.stores.redis.codes import STATE_BYTE
from headrace.stores.redis.connection import Argument, Server
from headrace.stores.redis.errors import text_refused
from headrace.stores.redis.lanes import pack_lane
from headrace.stores.redis.log import pack_event
from headrace.stores.redis.rows import more_of, pack_behind_payload, pack_payload, pack_row
from headrace.stores.redis.scripts import Script

_UPDATE = Script("update")
_REWRITE = Script("rewrite")
_DELETE = Script("delete")

_JOBS_PER_CALL = 500  # each stands alone; each call holds up everyone else's
_BYTES_PER_CALL = 16_000_000


async def update(server: Server, changes: Sequence[Change]) -> list[bool]:
    """With the lane and the tags that follow from what was said."""
    answers: list[bool] = []
    for start in range(0, len(changes), _JOBS_PER_CALL):
        with text_refused():
            arguments = [
                argument
                for change in changes[start : start + _JOBS_PER_CALL]
                for argument in _updated(change)
            ]
        written = await server.write_script(_UPDATE, *arguments)
        answers += (answer == 1 for answer in written)
    return answers


def _updated(change: Change) -> tuple[Argument, ...]:
    before, after = change.before, change.after
    return (
        before.id,
        str(before.version),
        STATE_BYTE[before.state],
        pack_lane(before.tenant, before.queue, before.type, before.priority, before.limit_key),
        pack_lane(after.tenant, after.queue, after.type, after.priority, after.limit_key),
        pack_row(after),
        pack_behind_payload(after),
        pack_event(change.event),
    )


async def rewrite(server: Server, rewrites: Sequence[Rewrite]) -> list[bool]:
    """The same contents in another form.

    Each job stands alone, so a call takes as many as it can without holding others up for long.
    """
    with text_refused():
        pages = list(_pages([_rewritten(one) for one in rewrites]))
    answers: list[bool] = []
    for page in pages:
        # The version fences a rewrite, and one made twice does what one does: it may be repeated.
        written = await server.read_script(_REWRITE, *(one for job in page for one in job))
        answers += (answer == 1 for answer in written)
    return answers


def _rewritten(rewrite: Rewrite) -> list[str | bytes]:
    payload, message = rewrite.payload_json, rewrite.failure_message
    things: list[tuple[str, bytes]] = [*more_of(rewrite)]
    if payload is not None:
        things.append(("b", pack_payload(payload)))
    if message is not None:
        things.append(("f", message.encode()))
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


async def delete(server: Server, jobs: Mapping[str, int]) -> bool:
    """All or, when one has moved on, none."""
    if not jobs:
        return True
    return bool(await server.write_script(_DELETE, len(jobs), *jobs.keys(), *jobs.values()))
