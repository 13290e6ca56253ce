"""Events into rows of jobs and of attempts: the one place in the Spark part that knows how.

Whole columns at a time. What it gives agrees with `headrace.history.fold`, and with it with the jobs that
the store holds. Repeated events and events in any order are welcome: an event is known by its `seq`, and
within one job `seq` grows with every change.

A job id may be used again once its job was deleted. So rows stand for *lives*: each begins with an
enqueued event, whose `seq` is the life's `born_seq`. A life whose beginning the log no longer holds has
none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.model import LEASED, TERMINAL, EventKind, State
from headrace.spark.details import DEPENDENCY, details_of, updates_of
from headrace.spark.schemas import ATTEMPTS, EVENTS, TIME

_OF_THE_JOB = ("job_id", "tenant", "queue", "type", "priority")
"""The same in all events of a life, but for a priority that an update has changed, and then the update says
what it was: the timeline need not repeat them."""

TIMELINE = pa.struct([field for field in EVENTS if field.name not in (*_OF_THE_JOB, "cursor")])
"""One event within its job's row."""

JOBS = pa.schema(
    [
        pa.field("job_id", pa.string()),
        pa.field("born_seq", pa.int64()),
        pa.field("tenant", pa.string()),
        pa.field("queue", pa.string()),
        pa.field("type", pa.string()),
        pa.field("priority", pa.int32()),
        pa.field("state", pa.string()),
        pa.field("version", pa.int32()),
        pa.field("attempt", pa.int32()),
        pa.field("failures", pa.int32()),
        pa.field("losses", pa.int32()),
        pa.field("created_at", TIME),
        pa.field("run_at", TIME),
        pa.field("updated_at", TIME),
        pa.field("started_at", TIME),
        pa.field("finalized_at", TIME),
        pa.field("assignee", pa.string()),
        pa.field("assigned_at", TIME),
        pa.field("category", pa.string()),
        pa.field("code", pa.string()),
        pa.field("message", pa.string()),
        pa.field("wait_us", pa.int64()),
        pa.field("run_us", pa.int64()),
        pa.field("payload_bytes", pa.int64()),
        pa.field("result_bytes", pa.int64()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("key", pa.string()),
        pa.field("previous_id", pa.string()),
        pa.field("parent_id", pa.string()),
        pa.field("correlation_id", pa.string()),
        pa.field("limit_key", pa.string()),
        pa.field("max_attempts", pa.int32()),
        pa.field("expires_at", TIME),
        pa.field("timeout_seconds", pa.float64()),
        pa.field("dependencies", pa.list_(DEPENDENCY)),
        pa.field("last_seq", pa.int64()),
        pa.field("timeline", pa.list_(TIMELINE)),
    ]
)
"""One row per life of a job. The timeline holds all its events: folding them again, with others that came
later, gives the right row."""

_NEEDED = pa.schema([field for field in EVENTS if field.name != "cursor"])
_NONE = -1

_Places = npt.NDArray[np.int64]


class Folded(NamedTuple):
    jobs: pa.Table
    attempts: pa.Table


def fold(events: pa.Table) -> Folded:
    """The lives of all jobs that these events tell of (schema JOBS), and their attempts (ATTEMPTS)."""
    ordered = _Ordered(events)
    attempts = _attempts(ordered)
    return Folded(_jobs(ordered, attempts), attempts)


def attempts_of(events: pa.Table) -> pa.Table:
    """The attempts that these events tell of, by job and in order of their leases (schema ATTEMPTS)."""
    return _attempts(_Ordered(events))


def events_of(jobs: pa.Table) -> pa.Table:
    """The events behind rows of jobs: what `fold` was given, but for the cursors."""
    rows = jobs.select([*_OF_THE_JOB, "timeline"]).combine_chunks()
    timeline = _chunk(rows, "timeline")
    owners = pc.list_parent_indices(timeline)
    told = pa.Table.from_struct_array(timeline.flatten())
    for name in _OF_THE_JOB:
        values = _chunk(rows, name).take(owners)
        if name == "priority":
            values = _priorities(values, told, owners.to_numpy())
        told = told.append_column(name, values)
    return told.select(_NEEDED.names).cast(_NEEDED)


def _priorities(last: pa.Array, told: pa.Table, owners: npt.NDArray[np.int64]) -> pa.Array:
    """Of each event of these timelines: what its job ends with, or what a later update says that it was."""
    updates = updates_of(told)
    if not updates:
        return last
    priorities = last.to_numpy().copy()
    before = 0
    for place, detail in updates:
        if "priority" in detail["was"]:
            first = max(before, int(np.searchsorted(owners, owners[place])))
            priorities[first:place] = detail["was"]["priority"]
            before = place
    return pa.array(priorities)


class _Ordered:
    """Events without repeats, by job and seq, and where each life begins and ends among them."""

    def __init__(self, events: pa.Table) -> None:
        table = events.select(_NEEDED.names).cast(_NEEDED).combine_chunks()
        jobs = _chunk(table, "job_id").dictionary_encode().indices.to_numpy()
        seqs = _chunk(table, "seq").to_numpy()
        order = np.lexsort((seqs, jobs))
        jobs, seqs = jobs[order], seqs[order]
        fresh = _differs(jobs) | _differs(seqs)
        order, jobs = order[fresh], jobs[fresh]
        self.table: pa.Table = table.take(pa.array(order)).combine_chunks()
        begins = _differs(jobs) | self.where(pc.equal(self["kind"], EventKind.ENQUEUED))
        # While the enqueued event of a life is missing, its other events must not be taken for changes of
        # the life before: that row would lose what they say of the job itself.
        self.updates = self.where(pc.equal(self["kind"], EventKind.UPDATED))
        for name in ("tenant", "queue", "type", "priority"):
            other = _differs(self[name].dictionary_encode().indices.to_numpy())
            begins |= other & ~self.updates if name == "priority" else other
        self.starts: _Places = np.flatnonzero(begins)
        self.ends: _Places = np.append(self.starts[1:], len(order))[: len(self.starts)]
        self.life: _Places = np.cumsum(begins) - 1
        """Of each event: which life it belongs to."""

    def __getitem__(self, name: str) -> pa.Array:
        return _chunk(self.table, name)

    @staticmethod
    def where(mask: pa.Array) -> npt.NDArray[np.bool_]:
        """Nulls count as no."""
        found: npt.NDArray[np.bool_] = pc.fill_null(mask, fill_value=False).to_numpy(
            zero_copy_only=False
        )
        return found

    def among(self, name: str, states: frozenset[State]) -> npt.NDArray[np.bool_]:
        return self.where(pc.is_in(self[name], pa.array(sorted(states), pa.string())))

    def first(self, places: _Places) -> _Places:
        """Per life the first of these places (ascending), or none."""
        return _at(places, np.searchsorted(places, self.starts), self.starts, self.ends)

    def last(self, places: _Places) -> _Places:
        """Per life the last of these places (ascending), or none."""
        return _at(places, np.searchsorted(places, self.ends) - 1, self.starts, self.ends)

    def born_seq(self) -> pa.Array:
        """Per life."""
        born = self.where(pc.equal(self["kind"], EventKind.ENQUEUED))[self.starts]
        return _take(self["seq"], np.where(born, self.starts, _NONE))

    def leases(self) -> _Places:
        return np.flatnonzero(self.where(pc.equal(self["kind"], EventKind.LEASED)))


def _attempts(events: _Ordered) -> pa.Table:
    leased = events.leases()
    ended = _ends_of(leased, events)
    columns = {
        name: _take(events[name], leased) for name in (*_OF_THE_JOB, "attempt", "worker", "wait_us")
    }
    columns |= {
        name: _take(events[name], ended)
        for name in ("category", "code", "message", "run_us", "result_bytes")
    }
    columns["born_seq"] = events.born_seq().take(pa.array(events.life[leased]))
    columns["leased_at"] = _take(events["at"], leased)
    columns["leased_seq"] = _take(events["seq"], leased)
    columns["ready_at"] = _earlier(columns["leased_at"], columns["wait_us"])
    columns["ended_at"] = _take(events["at"], ended)
    columns["ended_seq"] = _take(events["seq"], ended)
    columns["outcome"] = _take(events["kind"], ended)
    columns["state_after"] = _take(events["after"], ended)
    return pa.table([columns[name] for name in ATTEMPTS.names], schema=ATTEMPTS)


def _ends_of(leased: _Places, events: _Ordered) -> _Places:
    """For each lease the event that left it; none while it runs, or while that event is not here."""
    leaving = np.flatnonzero(events.among("before", LEASED) & ~events.among("after", LEASED))
    bound = np.minimum(
        events.ends[events.life[leased]], np.append(leased[1:], len(events.life))[: len(leased)]
    )
    found = _at(leaving, np.searchsorted(leaving, leased), leased, bound)
    attempt = events["attempt"].to_numpy(zero_copy_only=False)
    # Where events between are missing, an end must not be taken for that of an earlier attempt.
    same = (found != _NONE) & (attempt[leased] == attempt[np.maximum(found, 0)])
    return np.where(same, found, _NONE)


def _jobs(events: _Ordered, attempts: pa.Table) -> pa.Table:
    first, last = events.starts, events.ends - 1
    columns = {name: _take(events[name], last) for name in _OF_THE_JOB}
    columns |= {
        name: _take(events[name], last)
        for name in ("version", "attempt", "failures", "losses", "run_at")
    }
    columns["state"] = _take(events["after"], last)
    columns["last_seq"] = _take(events["seq"], last)
    columns["updated_at"] = _updated_at(events)
    columns["created_at"] = _take(events["at"], first)
    columns["payload_bytes"] = _take(events["payload_bytes"], first)
    columns["born_seq"] = events.born_seq()
    columns |= _of_leases(events, attempts)
    columns["finalized_at"] = _finalized_at(events)
    failed = events.last(np.flatnonzero(events.where(pc.is_valid(events["category"]))))
    columns |= {name: _take(events[name], failed) for name in ("category", "code", "message")}
    resulted = events.last(np.flatnonzero(events.where(pc.is_valid(events["result_bytes"]))))
    columns["result_bytes"] = _take(events["result_bytes"], resulted)
    columns |= details_of(_take(events["detail"], first))._asdict()
    columns |= _updated(columns, events)
    columns["timeline"] = _timeline(events)
    return pa.table([columns[name] for name in JOBS.names], schema=JOBS)


def _of_leases(events: _Ordered, attempts: pa.Table) -> dict[str, pa.Array]:
    leased = events.leases()
    latest = events.last(leased)
    lives = events.life[leased]
    return {
        "started_at": _take(events["at"], events.first(leased)),
        "assignee": _take(events["worker"], latest),
        "assigned_at": _take(events["at"], latest),
        "wait_us": _sums(_chunk(attempts, "wait_us"), lives, len(events.starts)),
        "run_us": _sums(_chunk(attempts, "run_us"), lives, len(events.starts)),
    }


def _finalized_at(events: _Ordered) -> pa.Array:
    """When the life ended. `headrace.history.stays_ended`: some changes of an ended job are no news."""
    terminal = events.among("after", TERMINAL)
    completed = events.where(pc.equal(events["after"], State.COMPLETED))
    stays = events.among("before", TERMINAL) & ~completed
    telling = events.last(np.flatnonzero(~stays))
    ends = (telling != _NONE) & terminal[np.maximum(telling, 0)] if len(terminal) else telling > 0
    return _take(events["at"], np.where(ends, telling, _NONE))


def _updated_at(events: _Ordered) -> pa.Array:
    """The last change of state; an update is none."""
    changed = events.last(np.flatnonzero(~events.updates))
    return _take(events["at"], np.where(changed == _NONE, events.starts, changed))


def _updated(columns: dict[str, pa.Array], events: _Ordered) -> dict[str, pa.Array]:
    """What updates have said of jobs since they were born, where any have."""
    said: dict[str, dict[int, Any]] = {name: {} for name in ("tags", "correlation_id")}
    for place, detail in updates_of(events.table):
        for name, by_life in said.items():
            if name in detail:
                by_life[int(events.life[place])] = detail[name]
    return {
        name: _with(columns[name], by_life, JOBS.field(name).type)
        for name, by_life in said.items()
        if by_life
    }


def _with(column: pa.Array, values: dict[int, Any], type_: pa.DataType) -> pa.Array:
    places = sorted(values)
    fresh = pa.array([values[place] for place in places], type_)
    index = np.arange(len(column))
    index[places] = len(column) + np.arange(len(places))
    return pa.concat_arrays([column.cast(type_), fresh]).take(pa.array(index))


def _timeline(events: _Ordered) -> pa.Array:
    told = pa.StructArray.from_arrays(
        [events[field.name] for field in TIMELINE], fields=list(TIMELINE)
    )
    offsets = np.append(events.starts, len(told)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), told)


def _sums(values: pa.Array, lives: _Places, count: int) -> pa.Array:
    """Per life the sum of its values; null where it has none."""
    here = pc.is_valid(values).to_numpy(zero_copy_only=False)
    numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    # Not bincount with weights: that sums floats, and microseconds must stay exact.
    sums = np.zeros(count, np.int64)
    np.add.at(sums, lives, numbers)
    some = np.bincount(lives[here], minlength=count) > 0
    return pa.array(sums, mask=~some)


def _earlier(times: pa.Array, spans_us: pa.Array) -> pa.Array:
    return pc.subtract(times.cast(pa.int64()), spans_us).cast(TIME)


def _at(places: _Places, index: _Places, low: _Places, high: _Places) -> _Places:
    """places[index], or none where that lies outside [low, high)."""
    if not len(places):
        return np.full(len(index), _NONE, np.int64)
    found = places[np.clip(index, 0, len(places) - 1)]
    inside = (index >= 0) & (index < len(places)) & (found >= low) & (found < high)
    return np.where(inside, found, _NONE)


def _take(column: pa.Array, places: _Places) -> pa.Array:
    """The column's values at these places; null for none."""
    return column.take(pa.array(places, mask=places == _NONE))


def _differs(values: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """True where a value is not the one before it; the first always is."""
    return np.append([True], values[1:] != values[:-1])[: len(values)]


def _chunk(table: pa.Table, name: str) -> pa.Array:
    """The column of a table in one piece."""
    column = table[name]
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
