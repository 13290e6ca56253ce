"""Claiming: pick the due jobs, lease them, in one step.

What it costs depends on the lanes that have claimable jobs and on the limit, not on how many jobs
wait. Each lane is asked for its first job; lanes of one priority are merged by (run_at, seq), and a
lane is read on only once its first job is taken. Which jobs may be leased, and what a lease
writes, is the lifecycle's to say.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec

from headrace import lifecycle
from headrace.clock import to_us
from headrace.model import Job
from headrace.stores.base import ClaimRequest
from headrace.stores.sqlite import changes, queues, tags
from headrace.stores.sqlite.changes import Writable
from headrace.stores.sqlite.rows import jobs_by_seq, us_or_none
from headrace.stores.sqlite.snapshot import Snapshot, Transaction
from headrace.stores.sqlite.sql import json_list, query

_LANES = query("claim_lanes")
_HEADS = query("claim_heads")
_TAGGED_HEADS = query("claim_tagged_heads")
_DUE = query("claim_due")
_TAGGED_DUE = query("claim_tagged_due")

_HEADS_DECODER = msgspec.json.Decoder(list[tuple[tuple[int, int] | None, int]])
_ENTRIES_DECODER = msgspec.json.Decoder(list[tuple[int, int]])
_NO_TAGS = json_list([])
_NO_SEQ = -1
_LONG_AGO = (-(2**63), _NO_SEQ)
_CHUNK_MIN = 8  # entries read ahead from each of several lanes


def claim(tx: Transaction, request: ClaimRequest) -> list[Job]:
    jobs = jobs_by_seq(tx, due_seqs(tx, request))
    command = lifecycle.Claim(
        worker=request.worker, nonce=request.nonce, lease_seconds=request.lease_seconds
    )
    leased = [lifecycle.apply(job, command, request.now) for job in jobs]
    changes.write(
        tx,
        [
            Writable(change, change.before.seq, us_or_none(change.after.lease_until))
            for change in leased
        ],
    )
    return [change.after for change in leased]


def due_seqs(view: Snapshot, request: ClaimRequest) -> list[int]:
    """Up to `limit` jobs to claim, in the order priority, run_at, seq."""
    if request.limit <= 0:
        return []
    bound: dict[str, Any] = {"now": to_us(request.now)}
    if request.tags:
        driver = tags.rarest_ready(view, request.tags)
        bound |= {"tag": driver.tag, "others": driver.others}
    taken: list[int] = []
    lanes = _lanes_by_priority(view, request)
    for priority in sorted(lanes):
        taken += _merge(view, lanes[priority], bound, request.limit - len(taken))
        if len(taken) == request.limit:
            break
    return taken


def _lanes_by_priority(view: Snapshot, request: ClaimRequest) -> dict[int, list[int]]:
    """The lanes with claimable jobs that the request is for.

    Matched here and not by SQLite, which would make a temporary table of each list it is given; the
    keys of lanes are at hand.
    """
    pauses = {(pause.queue, pause.tenant) for pause in queues.pauses(view)}
    wanted_queues = None if request.queues is None else frozenset(request.queues)
    wanted_types = None if request.types is None else frozenset(request.types)
    lanes: dict[int, list[int]] = {}
    for lane in view.numbers(_LANES, ()):
        tenant, queue, type_, priority = view.lanes.key(lane)
        if (
            (request.tenant is None or tenant == request.tenant)
            and (wanted_queues is None or queue in wanted_queues)
            and (wanted_types is None or type_ in wanted_types)
            and (queue, None) not in pauses
            and (queue, tenant) not in pauses
        ):
            lanes.setdefault(priority, []).append(lane)
    return lanes


def _merge(view: Snapshot, lanes: list[int], bound: Mapping[str, Any], limit: int) -> list[int]:
    """The first due jobs of lanes of one priority, by (run_at, seq)."""
    if len(lanes) == 1:
        return [seq for _, seq in _LaneReader(view, lanes[0], bound, _LONG_AGO, limit).read()]
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
            readers[lane] = _LaneReader(view, lane, bound, (run_at, seq), chunk)
        following = readers[lane].next()
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
    sql = _TAGGED_HEADS if "tag" in bound else _HEADS
    (answer,) = view.connection.execute(sql, {**bound, "lanes": json_list(lanes)}).fetchone()
    is_certain = bound.get("others", _NO_TAGS) == _NO_TAGS
    return [
        (head[0], head[1] if is_certain else _NO_SEQ, lane)
        for head, lane in _HEADS_DECODER.decode(answer)
        if head is not None and head[0] <= bound["now"]
    ]


class _LaneReader:
    """The due jobs of one lane after a point, read a chunk at a time."""

    def __init__(
        self,
        view: Snapshot,
        lane: int,
        bound: Mapping[str, Any],
        after: tuple[int, int],
        chunk: int,
    ) -> None:
        self._connection = view.connection
        self._sql = _TAGGED_DUE if "tag" in bound else _DUE
        self._bound = {**bound, "lane": lane, "limit": chunk}
        self._after = after
        self._chunk = chunk
        self._entries: deque[tuple[int, int]] = deque()
        self._is_spent = False

    def next(self) -> tuple[int, int] | None:
        """(run_at, seq) of the next one."""
        if not self._entries and not self._is_spent:
            self._entries.extend(self.read())
        return self._entries.popleft() if self._entries else None

    def read(self) -> list[tuple[int, int]]:
        """The next chunk."""
        self._bound["run_at"], self._bound["seq"] = self._after
        (answer,) = self._connection.execute(self._sql, self._bound).fetchone()
        chunk = sorted(_ENTRIES_DECODER.decode(answer))
        self._is_spent = len(chunk) < self._chunk
        if chunk:
            self._after = chunk[-1]
        return chunk
