"""Lanes: all jobs of one tenant, queue, type, priority and limit key, and how many are in each state."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from headrace.model import Event, Job, State
from headrace.stores.columns import LaneKey
from headrace.stores.sqlite.sql import LANE_COUNTS, json_list, moved, query

_ADD = query("lane_add")
_ID = query("lane_id")
_KEYS = query("lane_keys")
_MOVE = query("lane_move")
_REMOVE = query("lane_remove")

_KEYS_MAX = 100_000  # some 35 MB

STATES = tuple(State)
"""In the order of the columns of `lanes`."""


class Lanes:
    """The lanes one connection knows.

    No id is given twice, so which key an id has is remembered for good. So is the id of a lane without
    a limit key, once committed: it never goes. A lane with a limit key goes with its last job, whichever
    process deletes that; so its id is remembered only while the transaction keeps others from it.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._keys: dict[int, LaneKey] = {}
        self._ids: dict[tuple[str, str, str, int, str | None], int] = {}
        self._passing: list[LaneKey] = []
        self._added: list[tuple[int, LaneKey]] = []

    def key(self, lane: int) -> LaneKey:
        """The key of a lane that a row names."""
        key = self._keys.get(lane)
        if key is None:
            self.learn([lane])
            key = self._keys[lane]
        return key

    def learn(self, lanes: Iterable[int]) -> None:
        """Ask for all keys that are not known yet at once: `key` would ask one by one."""
        unknown = {lane for lane in lanes if lane not in self._keys}
        if unknown:
            if len(self._keys) + len(unknown) > _KEYS_MAX:
                self._keys.clear()
            rows = self._connection.execute(_KEYS, (json_list(unknown),)).fetchall()
            self._keys |= {lane: LaneKey._make(key) for lane, *key in rows}

    def of(self, job: Job) -> int:
        """The lane of a job, added if it is new. Only inside a write."""
        lane = self._ids.get((job.tenant, job.queue, job.type, job.priority, job.limit_key))
        return self._ensure(lane_key(job, job.limit_key)) if lane is None else lane

    def of_event(self, event: Event) -> int:
        """The lane that an event names, added if it is new: one that stays. Only inside a write."""
        lane = self._ids.get((event.tenant, event.queue, event.type, event.priority, None))
        return self._ensure(lane_key(event, None)) if lane is None else lane

    def find(self, key: LaneKey) -> int | None:
        """The lane with this key, if there is one. Only inside a write."""
        lane = self._ids.get(key)
        if lane is None:
            row = self._connection.execute(_ID, key).fetchone()
            if row is not None:
                (lane,) = row
                self._remember(lane, key)
        return lane

    def remove(self, lane: int) -> None:
        """Let go of a lane with a limit key, if no job is left in it. Only inside a write."""
        key = self.key(lane)
        if self._connection.execute(_REMOVE, (lane,)).rowcount:
            self._ids.pop(key, None)

    def mark(self) -> int:
        """A point to come back to with `forget`."""
        return len(self._added)

    def forget(self, mark: int) -> None:
        """Lanes added since the mark were rolled back: their ids may be given to others."""
        for lane, key in self._added[mark:]:
            self._keys.pop(lane, None)
            self._ids.pop(key, None)
        del self._added[mark:]

    def end(self) -> None:
        """The transaction is over: what was added, and not forgotten, is committed."""
        self._added.clear()
        for key in self._passing:
            self._ids.pop(key, None)
        self._passing.clear()

    def _ensure(self, key: LaneKey) -> int:
        lane = self.find(key)
        if lane is None:
            lane = self._connection.execute(_ADD, key).lastrowid
            assert lane is not None  # an INSERT has made a row
            self._remember(lane, key)
            self._added.append((lane, key))
        return lane

    def _remember(self, lane: int, key: LaneKey) -> None:
        self._keys[lane] = key
        self._ids[key] = lane
        if key.limit_key is not None:
            self._passing.append(key)


def lane_key(named: Job | Event, limit_key: str | None) -> LaneKey:
    return LaneKey(named.tenant, named.queue, named.type, int(named.priority), limit_key)


class Moves:
    """How the counts of lanes change by one write: summed up, then one statement per lane."""

    def __init__(self) -> None:
        self._lanes: dict[int, Counter[str]] = {}

    def enter(self, lane: int, state: State, failures: int) -> None:
        self._add(lane, state, 1, failures)

    def leave(self, lane: int, state: State, failures: int) -> None:
        self._add(lane, state, -1, -failures)

    def write(self, connection: sqlite3.Connection) -> None:
        for lane, counts in self._lanes.items():
            moves = {name: by for name, by in counts.items() if by}
            if moves:
                connection.execute(_move(tuple(moves)), (*moves.values(), lane))

    def _add(self, lane: int, state: State, jobs: int, failures: int) -> None:
        counts = self._lanes.get(lane)
        if counts is None:
            counts = self._lanes[lane] = Counter()
        counts[state] += jobs
        if failures:
            counts[f"{state}_failures"] += failures


@lru_cache(maxsize=128)
def _move(counts: tuple[str, ...]) -> str:
    """The statement that moves these counts: the others, with their checks, are left alone."""
    return _MOVE.replace(moved(LANE_COUNTS), moved(counts))
