"""Writing what a job's user says of it, with the lane and the tags that follow from that."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.model import Change
from headrace.stores.redis.codes import STATE_BYTE
from headrace.stores.redis.connection import Argument, Server
from headrace.stores.redis.errors import text_refused
from headrace.stores.redis.lanes import pack_lane
from headrace.stores.redis.log import pack_event
from headrace.stores.redis.rows import pack_behind_payload, pack_row
from headrace.stores.redis.scripts import Script

_UPDATE = Script("update")

_JOBS_PER_CALL = 500  # each stands alone; each call holds up everyone else's


async def update(server: Server, changes: Sequence[Change]) -> list[bool]:
    answers: list[bool] = []
    for start in range(0, len(changes), _JOBS_PER_CALL):
        with text_refused():
            arguments = [
                argument
                for change in changes[start : start + _JOBS_PER_CALL]
                for argument in _arguments(change)
            ]
        written = await server.write_script(_UPDATE, *arguments)
        answers += (answer == 1 for answer in written)
    return answers


def _arguments(change: Change) -> tuple[Argument, ...]:
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
