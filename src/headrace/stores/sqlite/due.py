"""The due jobs of lanes, in claim order.

What it costs depends on the lanes that have claimable jobs and on the limit, not on how many jobs
wait. Each lane is asked for its first job; lanes of one priority are merged by (run_at, seq), and a
lane is read on only once its first job is taken.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from headrace.clock import to_us
from headrace.stores.base import ClaimRequest, Head, Share
from headrace.stores.sqlite import eligible, tags
from headrace.stores.sqlite.eligible import Eligible
from headrace.stores.sqlite.lanes import LaneKey
from headrace.stores.sqlite.rows import read_time
from headrace.stores.sqlite.session import Snapshot
from headrace.stores.sqlite.sql import json_list, query

_CLAIM_HEADS = query("claim_heads")
_CLAIM_TAGGED_HEADS = query("claim_tagged_heads")
_DUE = query("claim_due")
_TAGGED_DUE = query("claim_tagged_due")
_HEADS = query("heads")
_NEXT_DUE = query("next_due")
_TAGGED_HEADS = query("heads_tagged")

_CLAIM_HEADS_DECODER = msgspec.json.Decoder(list[tuple[tuple[int, int] | None, int]])
_ENTRIES_DECODER = msgspec.json.Decoder(list[tuple[int, int]])
_HEADS_DECODER = msgspec.json.Decoder(list[tuple[tuple[int | None, int], int]])
_NO_TAGS = json_list([])
_NO_SEQ = -1
_LONG_AGO = (-(2**63), _NO_SEQ)
_CHUNK_MIN = 8  # entries read ahead from each of several lanes


def first(view: Snapshot, request: ClaimRequest) -> list[int]:
    """The seqs of up to `limit` jobs, in the order priority, run_at, seq. Gates are heeded."""
    if request.limit <= 0:
        return []
    bound = _bound(view, request)
    by_priority: dict[int, list[int]] = {}
    for lane, key in Eligible(request, eligible.paused_or_gated(view)).waiting(view).items():
        by_priority.setdefault(key.priority, []).append(lane)
    taken: list[int] = []
    for priority in sorted(by_priority):
        taken += _merge(view, by_priority[priority], bound, request.limit - len(taken))
        if len(taken) == request.limit:
            break
    return taken


def shares(view: Snapshot, request: ClaimRequest, wanted: Sequence[Share]) -> list[int]:
    """The seqs of the first due jobs of each lane, lane after lane, `limit` in all. Gates or not."""
    bound = _bound(view, request)
    lanes = Eligible(request, eligible.paused(view))
    readers: dict[int, _LaneReader] = {}
    taken: list[int] = []
    for share in wanted:
        key = LaneKey(share.tenant, share.queue, share.type, share.priority, share.limit_key)
        limit = min(share.jobs, request.limit - len(taken))
        lane = view.lanes.find(key) if limit > 0 and lanes.admits(key) else None
        if lane is not None:
            reader = readers.setdefault(lane, _LaneReader(view, lane, bound))
            taken += [seq for _, seq in reader.read(limit)]
    return taken


def heads(view: Snapshot, request: ClaimRequest) -> list[Head]:
    """The front of each lane that has due jobs. Gates or not."""
    if request.limit <= 0:
        return []
    bound = _bound(view, request)
    lanes = Eligible(request, eligible.paused(view)).waiting(view)
    sql = _TAGGED_HEADS if "tag" in bound else _HEADS
    wanted = {**bound, "lanes": json_list(lanes), "limit": request.limit}
    (answer,) = view.connection.execute(sql, wanted).fetchone()
    return [
        Head(**lanes[lane]._asdict(), run_at=read_time(run_at), jobs=jobs)
        for (run_at, jobs), lane in _HEADS_DECODER.decode(answer)
        if run_at is not None
    ]


def next_due(view: Snapshot, request: ClaimRequest) -> datetime | None:
    """When the next job of the lanes becomes due. Gates or not; tags are not looked at."""
    lanes = Eligible(request, eligible.paused(view)).waiting(view)
    wanted = {"now": to_us(request.horizon), "lanes": json_list(lanes)}
    (run_at,) = view.connection.execute(_NEXT_DUE, wanted).fetchone()
    return None if run_at is None else read_time(run_at)


def _bound(view: Snapshot, request: ClaimRequest) -> dict[str, Any]:
    """The parameters that every query of this module names; with a tag, those of tagged ones."""
    bound: dict[str, Any] = {"now": to_us(request.horizon)}
    if request.tags:
        driver = tags.rarest_ready(view, request.tags)
        bound |= {"tag": driver.tag, "others": driver.others}
    return bound


def _merge(view: Snapshot, lanes: list[int], bound: Mapping[str, Any], limit: int) -> list[int]:
    """The first due jobs of lanes of one priority, by (run_at, seq)."""
    if len(lanes) == 1:
        return [seq for _, seq in _LaneReader(view, lanes[0], bound).read(limit)]
    heads = _due_heads(view, lanes, bound)
    heapq.heapify(heads)
    chunk = min(limit, max(_CHUNK_MIN, 2 * limit // len(lanes)))
    readers: dict[int, _LaneReader] = {}
    taken: list[int] = []
    while heads:
        run_at, seq, lane = heads[0]
        if seq != _NO_SEQ:
            taken.append(seq)
            if len(taken) == limit:
                break
        if lane not in readers:
            readers[lane] = _LaneReader(view, lane, bound, (run_at, seq))
        following = readers[lane].next(chunk)
        if following is None:
            heapq.heappop(heads)
        else:
            heapq.heapreplace(heads, (*following, lane))
    return taken


def _due_heads(
    view: Snapshot, lanes: list[int], bound: Mapping[str, Any]
) -> list[tuple[int, int, int]]:
    """(run_at, seq, lane) of the first job of each lane in which one is due.

    With several tags the first job may lack the others: then only its time is known, and no seq.
    """
    sql = _CLAIM_TAGGED_HEADS if "tag" in bound else _CLAIM_HEADS
    (answer,) = view.connection.execute(sql, {**bound, "lanes": json_list(lanes)}).fetchone()
    is_certain = bound.get("others", _NO_TAGS) == _NO_TAGS
    return [
        (head[0], head[1] if is_certain else _NO_SEQ, lane)
        for head, lane in _CLAIM_HEADS_DECODER.decode(answer)
        if head is not None and head[0] <= bound["now"]
    ]


class _LaneReader:
    """The due jobs of one lane after a point, each once."""

    def __init__(
        self,
        view: Snapshot,
        lane: int,
        bound: Mapping[str, Any],
        after: tuple[int, int] = _LONG_AGO,
    ) -> None:
        self._connection = view.connection
        self._sql = _TAGGED_DUE if "tag" in bound else _DUE
        self._bound = {**bound, "lane": lane}
        self._after = after
        self._entries: deque[tuple[int, int]] = deque()
        self._is_spent = False

    def next(self, chunk: int) -> tuple[int, int] | None:
        """(run_at, seq) of the next one; so many are read at a time."""
        if not self._entries and not self._is_spent:
            self._entries.extend(self.read(chunk))
        return self._entries.popleft() if self._entries else None

    def read(self, limit: int) -> list[tuple[int, int]]:
        """The next ones."""
        self._bound["run_at"], self._bound["seq"] = self._after
        self._bound["limit"] = limit
        (answer,) = self._connection.execute(self._sql, self._bound).fetchone()
        entries = sorted(_ENTRIES_DECODER.decode(answer))
        self._is_spent = len(entries) < limit
        if entries:
            self._after = entries[-1]
        return entries
