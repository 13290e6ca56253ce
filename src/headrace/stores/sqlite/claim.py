"""Claiming: pick the due jobs, lease them, in one step; and which lanes have due jobs.

Which jobs may be leased, and what a lease writes, is the lifecycle's to say.

What picking costs depends on the lanes that have claimable jobs and on the limit, not on how many jobs
wait. Each lane is asked for its first job; lanes of one priority are merged by (run_at, seq), and a
lane is read on only once its first job is taken.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from headrace import lifecycle
from headrace.clock import to_us
from headrace.model import Job
from headrace.stores.base import GATE, ClaimRequest, Head, Held, Record, Share
from headrace.stores.columns import LaneKey
from headrace.stores.sqlite import queues, records, tags
from headrace.stores.sqlite.commit import Writable, write
from headrace.stores.sqlite.rows import jobs_by_seq, read_time, us_or_none
from headrace.stores.sqlite.session import Snapshot, Transaction
from headrace.stores.sqlite.sql import json_list, query

_CLAIM_HEADS = query("claim_heads")
_CLAIM_TAGGED_HEADS = query("claim_tagged_heads")
_CLOSED = query("claim_closed")
_DUE = query("claim_due")
_HEADS = query("heads")
_HELD = query("held")
_LANES = query("claim_lanes")
_LANES_OF_QUEUES = query("claim_lanes_of_queues")
_NEXT_DUE = query("next_due")
_QUEUES = query("claim_queues")
_TAGGED_DUE = query("claim_tagged_due")
_TAGGED_HEADS = query("heads_tagged")

_CLAIM_HEADS_DECODER = msgspec.json.Decoder(list[tuple[tuple[int, int] | None, int]])
_PAIRS_DECODER = msgspec.json.Decoder(list[tuple[int, int]])
_HEADS_DECODER = msgspec.json.Decoder(list[tuple[tuple[int | None, int], int]])
_NO_TAGS = json_list([])
_NO_SEQ = -1
_LONG_AGO = (-(2**63), _NO_SEQ)
_CHUNK_MIN = 8  # entries read ahead from each of several lanes


def claim(tx: Transaction, request: ClaimRequest) -> list[Job]:
    return _lease(tx, request, _first(tx, request))


def claim_shares(
    tx: Transaction, request: ClaimRequest, shares: Sequence[Share], gates: Sequence[Record]
) -> list[Job] | None:
    if not records.put_all(tx, gates):
        return None
    return _lease(tx, request, _of_shares(tx, request, shares))


def heads(view: Snapshot, request: ClaimRequest) -> list[Head]:
    """The front of each lane that has due jobs. Gates or not."""
    if request.limit <= 0:
        return []
    bound = _bound(view, request)
    lanes = Eligible(request, _paused(view)).waiting(view)
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
    lanes = Eligible(request, _paused(view)).waiting(view)
    wanted = {"now": to_us(request.horizon), "lanes": json_list(lanes)}
    (run_at,) = view.connection.execute(_NEXT_DUE, wanted).fetchone()
    return None if run_at is None else read_time(run_at)


def held(view: Snapshot, now: datetime, queues: Sequence[str]) -> list[Held]:
    (answer,) = view.connection.execute(_HELD, {"now": to_us(now)}).fetchone()
    leases = _PAIRS_DECODER.decode(answer)
    view.lanes.learn(lane for lane, _ in leases)
    sums: Counter[tuple[str, str, str | None]] = Counter()
    for lane, jobs in leases:
        key = view.lanes.key(lane)
        if key.queue in queues:
            sums[key.tenant, key.queue, key.limit_key] += jobs
    return [
        Held(tenant=tenant, queue=queue, limit_key=limit_key, jobs=jobs)
        for (tenant, queue, limit_key), jobs in sums.items()
    ]


def _lease(tx: Transaction, request: ClaimRequest, seqs: Sequence[int]) -> list[Job]:
    jobs = jobs_by_seq(tx, seqs)
    command = lifecycle.Claim(
        worker=request.worker,
        nonce=request.nonce,
        lease_seconds=request.lease_seconds,
        due_by=request.due_by,
    )
    claims = lifecycle.Claims(command, request.now)
    leased = [claims.of(job) for job in jobs]
    write(
        tx,
        [
            Writable(change, change.before.seq, us_or_none(change.after.lease_until))
            for change in leased
        ],
    )
    return [change.after for change in leased]


# --- picking: the due jobs of lanes, in claim order -------------------------------------------------


def _first(view: Snapshot, request: ClaimRequest) -> list[int]:
    """The seqs of up to `limit` jobs, in the order priority, run_at, seq. Gates are heeded."""
    if request.limit <= 0:
        return []
    bound = _bound(view, request)
    by_priority: dict[int, list[int]] = {}
    for lane, key in Eligible(request, _closed(view)).waiting(view).items():
        by_priority.setdefault(key.priority, []).append(lane)
    taken: list[int] = []
    for priority in sorted(by_priority):
        taken += _merge(view, by_priority[priority], bound, request.limit - len(taken))
        if len(taken) == request.limit:
            break
    return taken


def _of_shares(view: Snapshot, request: ClaimRequest, wanted: Sequence[Share]) -> list[int]:
    """The seqs of the first due jobs of each lane, lane after lane, `limit` in all. Gates or not."""
    bound = _bound(view, request)
    lanes = Eligible(request, _paused(view))
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
        entries = sorted(_PAIRS_DECODER.decode(answer))
        self._is_spent = len(entries) < limit
        if entries:
            self._after = entries[-1]
        return entries


# --- the lanes to pick from -------------------------------------------------------------------------

Closed = Collection[tuple[str, str | None]]
"""(queue, tenant) from which nothing is to be taken; without a tenant: of any."""


def _paused(view: Snapshot) -> Closed:
    return {(pause.queue, pause.tenant) for pause in queues.pauses(view)}


def _closed(view: Snapshot) -> Closed:
    return set(view.connection.execute(_CLOSED, (GATE,)).fetchall())


class Eligible:
    """The lanes of one request."""

    def __init__(self, request: ClaimRequest, closed: Closed) -> None:
        self._tenant = request.tenant
        self._queues = None if request.queues is None else frozenset(request.queues)
        self._types = None if request.types is None else frozenset(request.types)
        self._closed = closed

    def admits(self, key: LaneKey) -> bool:
        tenant, queue, type_, _, _ = key
        return (
            (self._tenant is None or tenant == self._tenant)
            and (self._queues is None or queue in self._queues)
            and (self._types is None or type_ in self._types)
            and (queue, None) not in self._closed
            and (queue, tenant) not in self._closed
        )

    def waiting(self, view: Snapshot) -> dict[int, LaneKey]:
        """Those with claimable jobs, due or not."""
        lanes = self._candidates(view)
        view.lanes.learn(lanes)
        return {lane: key for lane in lanes if self.admits(key := view.lanes.key(lane))}

    def _candidates(self, view: Snapshot) -> list[int]:
        shut = {queue for queue, tenant in self._closed if tenant is None}
        if self._queues is None and not shut:
            return view.numbers(_LANES, ())
        wanted = self._queues
        if wanted is None:
            wanted = frozenset(queue for (queue,) in view.connection.execute(_QUEUES).fetchall())
        return view.numbers(_LANES_OF_QUEUES, (json_list(wanted - shut),))
