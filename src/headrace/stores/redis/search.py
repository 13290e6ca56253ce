"""How jobs are found by filters.

A search goes through the narrowest list at hand, page by page, in order of seq, or over all rows where no
list is narrow. Each page is one short script that checks the filters on the rows, so that no call holds the
server up for long.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

import msgspec

from headrace.clock import to_us
from headrace.model import TERMINAL, Job, State
from headrace.stores.base import Query
from headrace.stores.redis.codes import STATE_CODE
from headrace.stores.redis.connection import Argument, Server
from headrace.stores.redis.lanes import read_lanes
from headrace.stores.redis.rows import handle_of, read_jobs
from headrace.stores.redis.scripts import Script

_PICK = Script("pick")
_LISTS = Script("lists")
_GATHER = Script("gather")
_SCAN = Script("scan")

_HANDLES_PER_CALL = 1000
_LISTS_PER_CALL = 2000
_BYTES_PER_CALL = 16_000_000
_SCAN_ROWS_PER_CALL = 20_000
_SCAN_TIMES = 5
"""To look at a row in a scan takes about a microsecond; to fetch a job from a list so many times as long."""
_GATHER_MAX = 200_000
_LANES_MAX = 5_000
"""Where there are more lanes with jobs, a scan finds out by itself which of them are wanted."""

_encode = msgspec.msgpack.Encoder().encode


async def pick(
    server: Server, query: Query, handles: Sequence[str | bytes], limit: int
) -> list[Job]:
    """Of these jobs the first `limit` that match."""
    wanted = pack_filter(query)
    found: list[Job] = []
    start = 0
    while start < len(handles) and len(found) < limit:
        page = handles[start : start + _HANDLES_PER_CALL]
        reply, looked_at = await server.read_script(
            _PICK, wanted, limit - len(found), _BYTES_PER_CALL, *page
        )
        found += read_jobs(reply)
        start += looked_at
    return found


def pack_filter(query: Query) -> bytes:
    """For lua/shared/filter.lua."""
    return _encode(
        (
            False if query.tenant is None else query.tenant,
            False if query.queues is None else list(query.queues),
            False if query.types is None else list(query.types),
            False if query.states is None else [STATE_CODE[state] for state in query.states],
            list(query.tags),
            False if query.assignee is None else query.assignee,
            _us(query.created_from),
            _us(query.created_before),
            _us(query.finalized_before),
        )
    )


def _us(moment: datetime | None) -> int | bool:
    return False if moment is None else to_us(moment)


async def candidates(server: Server, query: Query) -> AsyncIterator[Sequence[str | bytes]] | None:
    """Handles of every job that may match, in the order of the query, page by page. None: scan all rows."""
    every = int(await server.read("ZCARD", server.keys.of("jobs")))
    tag, tagged = await rarest(server, query.tags) if query.tags else ("", every)
    lists, listed = await _lists(server, query)
    if listed is None:
        listed = every
    narrowest = min(tagged, listed)
    if narrowest * _SCAN_TIMES > every:
        return None
    if listed <= tagged and listed <= _GATHER_MAX:
        return one_page(in_order(await _gather(server, lists, query), query))
    return walk(server, server.keys.tag(tag), query) if query.tags else None


async def one_page(handles: Sequence[str | bytes]) -> AsyncIterator[Sequence[str | bytes]]:
    yield handles


async def scan(server: Server, query: Query) -> list[Job]:
    """Over all rows, from where the query goes on. What most rows lack is told from their bytes alone."""
    lanes = await _wanted_lanes(server, query)
    if lanes is not None and not lanes:
        return []
    texts = [*query.tags, *([] if query.assignee is None else [query.assignee])]
    states = None if query.states is None else [STATE_CODE[state] for state in query.states]
    promising = _encode(
        (
            False if lanes is None else lanes,
            False if states is None else states,
            texts,
            False if query.assignee is None else query.assignee,
        )
    )
    wanted = pack_filter(query)
    direction = "d" if query.newest_first else "a"
    after: Argument = "" if query.after_seq is None else query.after_seq
    found: list[Job] = []
    while len(found) < query.limit:
        reply, after, _ = await server.read_script(
            _SCAN,
            wanted,
            promising,
            direction,
            after,
            query.limit - len(found),
            _BYTES_PER_CALL,
            _SCAN_ROWS_PER_CALL,
        )
        found += read_jobs(reply)
        if after == b"":
            break
    return found


async def _wanted_lanes(server: Server, query: Query) -> list[int] | None:
    """The lanes in which jobs of the wanted tenant, queues and types are. None: any."""
    if query.tenant is None and query.queues is None and query.types is None:
        return None
    counts = server.keys.of("counts")
    if int(await server.read("HLEN", counts)) > _LANES_MAX:
        return None
    letters = None if query.states is None else {STATE_CODE[state] for state in query.states}
    fields = [field.decode().split(":") for field in await server.read("HKEYS", counts)]
    numbers = sorted({int(lane) for lane, state in fields if letters is None or state in letters})
    if not numbers:
        return []
    names = await server.read("HMGET", server.keys.of("lanes"), *numbers)
    flat = [item for pair in zip(numbers, names, strict=True) for item in pair]
    return [
        number
        for number, lane in read_lanes(flat).items()
        if query.tenant in (None, lane.tenant)
        and (query.queues is None or lane.queue in query.queues)
        and (query.types is None or lane.type in query.types)
    ]


async def rarest(server: Server, tags: Sequence[str]) -> tuple[str, int]:
    """The tag with the fewest jobs, and how many those are."""
    counts = [(int(await server.read("ZCARD", server.keys.tag(tag))), tag) for tag in tags]
    jobs, tag = min(counts)
    return tag, jobs


async def walk(server: Server, key: str, query: Query) -> AsyncIterator[list[str | bytes]]:
    """A list of handles that is sorted by seq, from where the query goes on."""
    command, end = ("ZREVRANGEBYSCORE", "-inf") if query.newest_first else ("ZRANGEBYSCORE", "+inf")
    start = f"({query.after_seq}" if query.after_seq is not None else _opposite(end)
    while True:
        flat = await server.read(
            command, key, start, end, "WITHSCORES", "LIMIT", 0, _HANDLES_PER_CALL
        )
        if not flat:
            return
        seqs = [int(float(value)) for value in flat[1::2]]
        yield flat[::2]
        if len(seqs) < _HANDLES_PER_CALL:
            return
        start = f"({seqs[-1]}"


def _opposite(end: str) -> str:
    return "-inf" if end == "+inf" else "+inf"


async def _lists(server: Server, query: Query) -> tuple[list[str], int | None]:
    """The lists that hold every job of the wanted states, and how many jobs those are.

    None when the query names no states.
    """
    states = set(State) if query.states is None else set(query.states)
    before: Argument = ""
    if query.finalized_before is not None:
        states &= TERMINAL
        before = f"({to_us(query.finalized_before)}"
    elif query.states is None:
        return [], None
    letters = "".join(sorted(STATE_CODE[state] for state in states))
    names, jobs = await server.read_script(_LISTS, letters, before)
    return [name.decode() for name in names], int(jobs)


async def _gather(server: Server, lists: Sequence[str], query: Query) -> list[bytes]:
    """There may be a list per lane, so a call takes many."""
    before: Argument = "+inf"
    if query.finalized_before is not None:
        before = f"({to_us(query.finalized_before)}"
    handles: list[bytes] = []
    start = skip = 0
    while start < len(lists):
        page = lists[start : start + _LISTS_PER_CALL]
        some, through, skip = await server.read_script(
            _GATHER, before, skip, _HANDLES_PER_CALL * 10, *page
        )
        handles += some
        start += through
    return handles


def in_order(handles: Sequence[str | bytes], query: Query) -> list[str | bytes]:
    """Sorted by seq, from where the query goes on, each once."""
    seqs = sorted({int(handle) for handle in handles}, reverse=query.newest_first)
    after = query.after_seq
    if after is not None:
        seqs = [seq for seq in seqs if (seq < after if query.newest_first else seq > after)]
    return [handle_of(seq) for seq in seqs]
