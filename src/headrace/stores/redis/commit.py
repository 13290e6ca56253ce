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
from headrace.stores.redis.rows import pack_failure, pack_row, us_or_none
from headrace.stores.redis.scripts import Script

_COMMIT = Script("commit")

_CHANGES_PER_CALL = 1000  # where each stands alone; each call holds up everyone else's
_SPEC = Struct(">qqBBIIcIIII")
"""lease_until before and after, result, failure; as read: lane's place, version, state, attempt, failures,
losses, and the length of the holder that follows"""
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
    packed: list[Argument] = []
    with text_refused():
        for change in changes:
            packed += _change(change, lanes)
    head = (len(changes), wanted.together, wanted.leases_as_read, list(seen), list(lanes))
    arguments = [_encode(head), *(change.before.id for change in changes), *packed]
    answers, touched = await server.write_script(_COMMIT, *arguments)
    return Committed([answer == "1" for answer in answers.decode()], read_edges(touched))


def _change(change: Change, lanes: dict[str, int]) -> tuple[Argument, ...]:
    """`lanes`: the names of those in which the jobs were read, and the place of each in that list."""
    before, after = change.before, change.after
    result, failure = after.result_json, after.failure
    names = pack_lane(before.tenant, before.queue, before.type, before.priority, before.limit_key)
    holder = f"{before.token or ''}\n{before.assignee or ''}".encode()
    spec = _SPEC.pack(
        us_or_none(before.lease_until),
        us_or_none(after.lease_until),
        _action(before.result_json, result),
        _action(before.failure, failure),
        lanes.setdefault(names, len(lanes) + 1),
        before.version,
        STATE_BYTE[before.state],
        before.attempt,
        before.failures,
        before.losses,
        len(holder),
    )
    return (
        spec + holder + pack_row(after),
        pack_event(change.event),
        b"" if result is None else result,
        b"" if failure is None else pack_failure(failure),
    )


def _action(before: object, after: object) -> int:
    if after == before:
        return _LEAVE
    return _REMOVE if after is None else _WRITE
