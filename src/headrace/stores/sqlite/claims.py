"""Claiming: pick the due jobs, lease them, in one step.

What it costs depends on the lanes that have claimable jobs and on the limit, not on how many jobs
wait. Each lane is asked for its first job; lanes of one priority are merged by (run_at, seq), and a
lane is read on only while its next job is the next of all. Which jobs may be leased, and what a lease
writes, is the lifecycle's to say.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping
from typing import Any

from headrace import lifecycle
from headrace.clock import to_us
from headrace.model import Job, Priority
from headrace.stores.base import ClaimRequest
from headrace.stores.sqlite import changes, tags
from headrace.stores.sqlite.changes import Writable
from headrace.stores.sqlite.rows import jobs_by_seq, us_or_none
from headrace.stores.sqlite.snapshot import Snapshot, Transaction
from headrace.stores.sqlite.sql import json_list_or_none, query

_LANES = query("claim_lanes")
_TAGGED_LANES = query("claim_tagged_lanes")
_DUE = query("claim_due")
_TAGGED_DUE = query("claim_tagged_due")

_LONG_AGO = -(2**63)
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
    bound: dict[str, Any] = {
        "now": to_us(request.now),
        "tenant": request.tenant,
        "queues": json_list_or_none(request.queues),
        "types": json_list_or_none(request.types),
    }
    if request.tags:
        driver = tags.rarest_ready(view, request.tags)
        if driver.jobs == 0:
            return []
        bound |= {"tag": driver.tag, "others": driver.others}
    taken: list[int] = []
    lanes = _due_lanes(view, bound)
    for priority in Priority:
        if priority in lanes and len(taken) < request.limit:
            taken += _merge(view, lanes[priority], bound, request.limit - len(taken))
    return taken


def _due_lanes(view: Snapshot, bound: Mapping[str, Any]) -> dict[int, list[tuple[int, int]]]:
    """By priority: (time of its first job, lane) of each lane in which a job is due."""
    lanes: dict[int, list[tuple[int, int]]] = {}
    sql = _TAGGED_LANES if "tag" in bound else _LANES
    for lane, priority, first in view.connection.execute(sql, bound).fetchall():
        if first is not None and first <= bound["now"]:
            lanes.setdefault(priority, []).append((first, lane))
    return lanes


def _merge(
    view: Snapshot, lanes: list[tuple[int, int]], bound: Mapping[str, Any], limit: int
) -> list[int]:
    """The first due jobs of lanes of one priority, by (run_at, seq)."""
    chunk = limit if len(lanes) == 1 else max(_CHUNK_MIN, 2 * limit // len(lanes))
    readers = {lane: _LaneReader(view, lane, bound, min(chunk, limit)) for _, lane in lanes}
    # A lane starts with the time of its first job and no seq: it is read once that time is reached.
    heads = [(first, -1, lane) for first, lane in lanes]
    heapq.heapify(heads)
    taken: list[int] = []
    while heads:
        _, seq, lane = heads[0]
        if seq >= 0:
            taken.append(seq)
            if len(taken) == limit:
                break
        following = readers[lane].next()
        if following is None:
            heapq.heappop(heads)
        else:
            heapq.heapreplace(heads, (*following, lane))
    return taken


class _LaneReader:
    """The due jobs of one lane, read a chunk at a time."""

    def __init__(self, view: Snapshot, lane: int, bound: Mapping[str, Any], chunk: int) -> None:
        self._connection = view.connection
        self._sql = _TAGGED_DUE if "tag" in bound else _DUE
        self._bound = {**bound, "lane": lane, "limit": chunk, "run_at": _LONG_AGO, "seq": -1}
        self._chunk = chunk
        self._entries: deque[tuple[int, int]] = deque()
        self._is_spent = False

    def next(self) -> tuple[int, int] | None:
        """(run_at, seq) of the next one."""
        if not self._entries and not self._is_spent:
            self._read()
        return self._entries.popleft() if self._entries else None

    def _read(self) -> None:
        rows = self._connection.execute(self._sql, self._bound).fetchall()
        self._entries.extend(rows)
        self._is_spent = len(rows) < self._chunk
        if rows:
            self._bound["run_at"], self._bound["seq"] = rows[-1]
