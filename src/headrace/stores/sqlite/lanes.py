"""Lanes: all jobs of one tenant, queue, type and priority, and how many of them are in each state."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from headrace.model import Job, State
from headrace.stores.sqlite.sql import query

_ADD = query("lane_add")
_ID = query("lane_id")
_KEY = query("lane_key")
_MOVE = query("lane_move")

STATES = tuple(State)
"""In the order of the columns of `lanes`."""

_COLUMN = {state: index for index, state in enumerate(STATES)}


class LaneKey(NamedTuple):
    tenant: str
    queue: str
    type: str
    priority: int


class Lanes:
    """The lanes one connection knows. A lane never goes and never changes its key, once committed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._keys: dict[int, LaneKey] = {}
        self._ids: dict[tuple[str, str, str, int], int] = {}
        self._added: list[int] = []

    def key(self, lane: int) -> LaneKey:
        """The key of a lane that a row names."""
        key = self._keys.get(lane)
        if key is None:
            key = LaneKey._make(self._connection.execute(_KEY, (lane,)).fetchone())
            self._keys[lane] = key
        return key

    def of(self, job: Job) -> int:
        """The lane of a job, added if it is new. Only inside a write."""
        lane = self._ids.get((job.tenant, job.queue, job.type, job.priority))
        if lane is None:
            key = LaneKey(job.tenant, job.queue, job.type, int(job.priority))
            added = self._connection.execute(_ADD, key).rowcount == 1
            (lane,) = self._connection.execute(_ID, key).fetchone()
            self._ids[key] = lane
            self._keys[lane] = key
            if added:
                self._added.append(lane)
        return lane

    def mark(self) -> int:
        """A point to come back to with `forget`."""
        return len(self._added)

    def forget(self, mark: int) -> None:
        """Lanes added since the mark were rolled back: their ids may be given to others."""
        for lane in self._added[mark:]:
            del self._ids[self._keys.pop(lane)]
        del self._added[mark:]

    def keep(self) -> None:
        """What was added is committed."""
        self._added.clear()


class Moves:
    """How the counts of lanes change by one write: summed up, then one statement per lane."""

    def __init__(self) -> None:
        self._lanes: dict[int, list[int]] = {}

    def enter(self, lane: int, state: State, failures: int) -> None:
        self._add(lane, _COLUMN[state], 1, failures)

    def leave(self, lane: int, state: State, failures: int) -> None:
        self._add(lane, _COLUMN[state], -1, -failures)

    def write(self, connection: sqlite3.Connection) -> None:
        for lane, counts in self._lanes.items():
            connection.execute(_MOVE, (*counts, lane))

    def _add(self, lane: int, column: int, jobs: int, failures: int) -> None:
        counts = self._lanes.get(lane)
        if counts is None:
            counts = self._lanes[lane] = [0] * (2 * len(STATES))
        counts[column] += jobs
        counts[column + len(STATES)] += failures
