"""Writing changes whose jobs are still as they were read."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

import msgspec

from headrace.model import Change, Edge
from headrace.stores.base import Commit, Committed
from headrace.stores.redis.codes import STATE_BYTE
from headrace.stores.redis.connection import Argument, Server
from headrace.stores.redis.errors import text_refused
from headrace.stores.redis.graph import read_edges
from headrace.stores.redis.lanes import pack_lane
from headrace.stores.redis.log import pack_event
from headrace.stores.redis.rows import pack_failure, pack_row, position_us, us_or_none
from headrace.stores.redis.scripts import Script

_COMMIT = Script("commit")

_CHANGES_PER_CALL = 1000  # where each stands alone; each call holds up everyone else's
_SPEC = Struct(">qqBBIIIcIIIcIB")
"""lease_until as read, position afterwards, result, failure; as read: place of the lane and of the worker,
version, state, attempt, failures, losses; afterwards: state, failures, whether another worker holds it"""
_LEAVE, _WRITE, _REMOVE = 0, 1, 2

_encode = msgspec.msgpack.Encoder().encode


async def commit(server: Server, wanted: Commit) -> Committed:
    changes = wanted.changes
    if wanted.together or len(changes) <= _CHANGES_PER_CALL:
        return await _commit(server, wanted, changes, wanted.seen)
    applied: list[bool] = []
    touched: list[Edge] = []
    for start in range(0, len(changes), _CHANGES_PER_CALL):
        page = changes[start : start + _CHANGES_PER_CALL]
        # Edges are seen only once every child has been judged: with the last page.
        last = start + len(page) == len(changes)
        seen = wanted.seen_given(applied) if last else ()
        committed = await _commit(server, wanted, page, seen)
        applied += committed.applied
        touched += committed.touched
    return Committed(applied, touched)


async def _commit(
    server: Server, wanted: Commit, changes: Sequence[Change], seen: Sequence[tuple[str, str]]
) -> Committed:
    lanes: dict[str, int] = {}
    holders: dict[str, int] = {}
    specs: list[bytes] = []
    packed: list[Argument] = []
    with text_refused():
        for change in changes:
            before, after = change.before, change.after
            result, failure = after.result_json, after.failure
            result_action = _action(before.result_json, result)
            failure_action = _action(before.failure, failure)
            names = pack_lane(
                before.tenant, before.queue, before.type, before.priority, before.limit_key
            )
            specs.append(
                _SPEC.pack(
                    us_or_none(before.lease_until),
                    position_us(after),
                    result_action,
                    failure_action,
                    lanes.setdefault(names, len(lanes) + 1),
                    holders.setdefault(before.assignee or "", len(holders) + 1),
                    before.version,
                    STATE_BYTE[before.state],
                    before.attempt,
                    before.failures,
                    before.losses,
                    STATE_BYTE[after.state],
                    after.failures,
                    after.assignee is not None and after.assignee != before.assignee,
                )
            )
            packed += (pack_row(after), pack_event(change.event))
            if result_action == _WRITE and result is not None:
                packed.append(result)
            if failure_action == _WRITE and failure is not None:
                packed.append(pack_failure(failure))
    head = (wanted.together, wanted.leases_as_read, list(seen), list(lanes), list(holders))
    answers, touched = await server.write_script(
        _COMMIT,
        _encode(head),
        b"".join(specs),
        *(change.before.id for change in changes),
        *(change.before.token or "" for change in changes),
        *packed,
    )
    return Committed([answer == "1" for answer in answers.decode()], read_edges(touched))


def _action(before: object, after: object) -> int:
    if after == before:
        return _LEAVE
    return _REMOVE if after is None else _WRITE
