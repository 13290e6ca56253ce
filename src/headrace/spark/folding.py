"""Events into rows of jobs and of attempts: the one place in the Spark part that knows how.

Whole columns at a time. What it gives agrees with `headrace.history.fold`, and with it with the jobs that
the store holds. Repeated events and events in any order are welcome: an event is known by its `seq`, and
within one job `seq` grows with every change.

A job id may be used again once its job was deleted. So rows stand for *lives*: each begins with an
enqueued event, whose `seq` is the life's `born_seq`. A life whose beginning the log no longer holds has
none.

There are two ways in, and both give the same: all events of some jobs, or rows that were folded before and
the events that follow on them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.model import CLAIMABLE, LEASED, TERMINAL, EventKind, State
from headrace.spark.details import DEPENDENCY, details_of, updates_of
from headrace.spark.schemas import ATTEMPTS, EVENTS, TIME

_OF_THE_JOB = ("job_id", "tenant", "queue", "type", "priority")
"""The same in all events of a life, but for a priority that an update has changed."""

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
        pa.field("events", pa.int32()),
        pa.field("first_run_at", TIME),
        pa.field("failed_seq", pa.int64()),
        pa.field("last_seq", pa.int64()),
        pa.field("last_at", TIME),
        pa.field("last_before", pa.string()),
    ]
)
"""One row per life of a job. It holds all that its next event needs: nothing of its past is looked at again
as long as events follow on."""

LEVELS = pa.schema(
    [
        pa.field("queue", pa.string()),
        pa.field("minute", TIME),
        pa.field("waiting", pa.int64()),
        pa.field("ready", pa.int64()),
        pa.field("running", pa.int64()),
        pa.field("changes", pa.int64()),
    ]
)
"""By how much a queue's levels rise in a minute. They add up: what turns out differently is told by rows
that take back what was told before. `changes`: how many jobs changed any of them."""

_NEEDED = pa.schema([field for field in EVENTS if field.name not in ("cursor", "lease_until")])
NEEDED: tuple[str, ...] = tuple(_NEEDED.names)
"""The columns of events that folding looks at."""
_NONE = -1

_Places = npt.NDArray[np.int64]


class Folded(NamedTuple):
    jobs: pa.Table
    attempts: pa.Table
    levels: pa.Table


def fold(events: pa.Table, rows: pa.Table | None = None, running: pa.Table | None = None) -> Folded:
    """The lives of all jobs that these events tell of (schema JOBS), their attempts, and their levels.

    `rows`: lives that were folded before, on which the first events of their jobs follow (`follows_on`), and
    `running`: their attempts that had not ended. Then the attempts are those that began or ended since, and
    the levels what has changed since.
    """
    ordered = _Ordered(events, rows)
    attempts, lives = _attempts(ordered)
    ended = _ended_since(ordered, running)
    jobs = _jobs(ordered, attempts, lives)
    return Folded(jobs, pa.concat_tables([attempts, ended]), _levels(ordered))


def attempts_of(events: pa.Table) -> pa.Table:
    """The attempts that these events tell of, by job and in order of their leases (schema ATTEMPTS)."""
    return _attempts(_Ordered(events))[0]


def follows_on(events: pa.Table, rows: pa.Table) -> pa.Array:
    """The jobs whose events, without repeats, go on without a gap: from their birth, or from their row.

    `rows`: at most one per job, its latest.
    """
    ordered = _Ordered(events)
    version = ordered["version"].to_numpy()
    kinds = ordered["kind"]
    born = ordered.where(pc.equal(kinds, EventKind.ENQUEUED))
    first = ordered.firsts
    inside = ~first & ~born
    next_one = np.append([False], version[1:] == version[:-1] + 1)[: len(version)]
    gap = inside & (~next_one | ordered.begins)
    places = np.flatnonzero(first & ~born)
    heads = ordered.table.take(pa.array(places))
    base = pc.index_in(heads["job_id"], value_set=_chunk(rows, "job_id"))
    bases = rows.take(base.combine_chunks()) if len(rows) else rows.slice(0, 0)
    if len(bases):
        agrees = pc.and_(
            pc.equal(heads["version"], pc.add(bases["version"], pa.scalar(1, pa.int32()))),
            pc.and_(
                pc.equal(heads["before"], bases["state"]),
                pc.greater(heads["seq"], bases["last_seq"]),
            ),
        )
        for name in ("tenant", "queue", "type"):
            agrees = pc.and_(agrees, pc.equal(heads[name], bases[name]))
        same = pc.or_(
            pc.equal(heads["priority"], bases["priority"]),
            pc.equal(heads["kind"], EventKind.UPDATED),
        )
        gap[places] |= ~ordered.where(pc.and_(agrees, same).combine_chunks())
    else:
        gap[places] = True
    ids = ordered["job_id"]
    broken = pc.unique(ids.filter(pa.array(gap)))
    every = ids.filter(pa.array(first))
    return every.filter(pc.invert(pc.is_in(every, value_set=broken)))


class _Ordered:
    """Events without repeats, by job and seq, and where each life begins and ends among them."""

    def __init__(self, events: pa.Table, rows: pa.Table | None = None) -> None:
        table = events.select(_NEEDED.names).cast(_NEEDED).combine_chunks()
        jobs = _chunk(table, "job_id").dictionary_encode().indices.to_numpy()
        seqs = _chunk(table, "seq").to_numpy()
        order = np.lexsort((seqs, jobs))
        jobs, seqs = jobs[order], seqs[order]
        fresh = _differs(jobs) | _differs(seqs)
        order, jobs = order[fresh], jobs[fresh]
        self.table: pa.Table = table.take(pa.array(order)).combine_chunks()
        self.firsts = _differs(jobs)
        """Of each event: whether it is the first of its job here."""
        begins = self.firsts | self.where(pc.equal(self["kind"], EventKind.ENQUEUED))
        # While the enqueued event of a life is missing, its other events must not be taken for changes of
        # the life before: that row would lose what they say of the job itself.
        self.updates = self.where(pc.equal(self["kind"], EventKind.UPDATED))
        for name in ("tenant", "queue", "type", "priority"):
            other = _differs(self[name].dictionary_encode().indices.to_numpy())
            begins |= other & ~self.updates if name == "priority" else other
        self.begins: npt.NDArray[np.bool_] = begins
        self.starts: _Places = np.flatnonzero(begins)
        self.ends: _Places = np.append(self.starts[1:], len(order))[: len(self.starts)]
        self.life: _Places = np.cumsum(begins) - 1
        """Of each event: which life it belongs to."""
        self.rows = JOBS.empty_table() if rows is None else rows.select(JOBS.names).combine_chunks()
        self.base: _Places = self._bases()
        """Of each life: the place of the row that it goes on from, or none."""

    def _bases(self) -> _Places:
        if not len(self.rows):
            return np.full(len(self.starts), _NONE, np.int64)
        ids = self["job_id"].take(pa.array(self.starts))
        found = pc.fill_null(pc.index_in(ids, value_set=_chunk(self.rows, "job_id")), _NONE)
        goes_on = self.firsts[self.starts] & ~self.where(
            pc.equal(self["kind"].take(pa.array(self.starts)), EventKind.ENQUEUED)
        )
        return np.where(goes_on, found.to_numpy(), _NONE).astype(np.int64)

    def before(self, name: str) -> pa.Array:
        """Per life, what its row said before these events; null where it had none."""
        return _take(_chunk(self.rows, name), self.base)

    def goes_on(self) -> npt.NDArray[np.bool_]:
        """Per life, whether it had a row."""
        found: npt.NDArray[np.bool_] = self.base != _NONE
        return found

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
        own = _take(self["seq"], np.where(born, self.starts, _NONE))
        return pc.coalesce(own, self.before("born_seq"))

    def leases(self) -> _Places:
        return np.flatnonzero(self.where(pc.equal(self["kind"], EventKind.LEASED)))


def _attempts(events: _Ordered) -> tuple[pa.Table, _Places]:
    """Those that begin here, and which life each belongs to."""
    leased = events.leases()
    lives = events.life[leased]
    ended = _ends_of(leased, events)
    columns = {
        name: _take(events[name], leased) for name in (*_OF_THE_JOB, "attempt", "worker", "wait_us")
    }
    columns["born_seq"] = events.born_seq().take(pa.array(lives))
    columns["leased_at"] = _take(events["at"], leased)
    columns["leased_seq"] = _take(events["seq"], leased)
    columns["ready_at"] = _earlier(columns["leased_at"], columns["wait_us"])
    columns |= _endings(events, ended)
    return pa.table([columns[name] for name in ATTEMPTS.names], schema=ATTEMPTS), lives


def _endings(events: _Ordered, ended: _Places) -> dict[str, pa.Array]:
    """What the events at these places say of the attempts that they end."""
    columns = {
        name: _take(events[name], ended)
        for name in ("category", "code", "message", "run_us", "result_bytes")
    }
    columns["ended_at"] = _take(events["at"], ended)
    columns["ended_seq"] = _take(events["seq"], ended)
    columns["outcome"] = _take(events["kind"], ended)
    columns["state_after"] = _take(events["after"], ended)
    return columns


def _ends_of_running(events: _Ordered) -> _Places:
    """Per life the event that left the lease which its row held; none while it runs."""
    leaving = np.flatnonzero(events.among("before", LEASED) & ~events.among("after", LEASED))
    found = events.first(leaving)
    leased = events.first(events.leases())
    in_time = (leased == _NONE) | (found < leased)
    attempt = events["attempt"].to_numpy(zero_copy_only=False)
    held = pc.fill_null(events.before("attempt"), _NONE).to_numpy()
    states = pa.array(sorted(LEASED), pa.string())
    leases = _Ordered.where(pc.is_in(events.before("state"), value_set=states))
    if not len(attempt):
        return found
    same = (found != _NONE) & in_time & leases & (attempt[np.maximum(found, 0)] == held)
    return np.where(same, found, _NONE)


def _ended_since(events: _Ordered, running: pa.Table | None) -> pa.Table:
    """Of the attempts that ran before these events, those that have ended with them."""
    if running is None or not len(running) or not len(events.rows):
        return ATTEMPTS.empty_table()
    ended = _ends_of_running(events)
    places = np.flatnonzero(ended != _NONE)
    # The events that end them name the attempt; an id that was used again has other births.
    known = pa.table(
        {
            "job_id": events["job_id"].take(pa.array(ended[places])),
            "attempt": events["attempt"].take(pa.array(ended[places])),
            "born": pc.fill_null(events.born_seq().take(pa.array(places)), _NONE),
            "end": pa.array(ended[places]),
        }
    )
    held = pa.table(
        {
            "job_id": running["job_id"],
            "attempt": running["attempt"],
            "born": pc.fill_null(running["born_seq"], _NONE),
            "row": pa.array(np.arange(len(running))),
        }
    )
    both = held.join(known, ["job_id", "attempt", "born"], join_type="inner")
    rows = running.select(ATTEMPTS.names).take(both["row"].combine_chunks())
    columns = {name: rows[name] for name in ATTEMPTS.names}
    columns |= _endings(events, both["end"].to_numpy())
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


def _jobs(events: _Ordered, attempts: pa.Table, lives: _Places) -> pa.Table:
    first, last = events.starts, events.ends - 1
    failed = events.last(np.flatnonzero(events.where(pc.is_valid(events["category"]))))
    resulted = events.last(np.flatnonzero(events.where(pc.is_valid(events["result_bytes"]))))
    columns = {name: _take(events[name], last) for name in _OF_THE_JOB}
    columns |= {
        name: _take(events[name], last)
        for name in ("version", "attempt", "failures", "losses", "run_at")
    }
    columns["state"] = _take(events["after"], last)
    columns["last_seq"] = _take(events["seq"], last)
    columns["last_at"] = _take(events["at"], last)
    columns["last_before"] = _take(events["before"], last)
    columns["updated_at"] = _updated_at(events)
    columns["born_seq"] = events.born_seq()
    columns |= _of_leases(events, attempts, lives)
    columns["finalized_at"] = _finalized_at(events)
    for name in ("category", "code", "message"):
        columns[name] = _latest(events, name, name, failed)
    columns["failed_seq"] = _latest(events, "failed_seq", "seq", failed)
    columns["result_bytes"] = _latest(events, "result_bytes", "result_bytes", resulted)
    columns |= _of_birth(events, first)
    columns |= _updated(columns, events)
    counts = pa.array((events.ends - events.starts).astype(np.int32))
    columns["events"] = pc.add(counts, pc.fill_null(events.before("events"), 0))
    return pa.table([columns[name] for name in JOBS.names], schema=JOBS)


def _latest(events: _Ordered, column: str, told: str, places: _Places) -> pa.Array:
    """Per life what the event at its place says; where there is none, what its row said."""
    own = _take(events[told], places)
    return pc.if_else(pa.array(places != _NONE), own, events.before(column))


def _of_birth(events: _Ordered, first: _Places) -> dict[str, pa.Array]:
    """What the first event of a life says once and for all."""
    columns: dict[str, pa.Array] = {
        "created_at": _take(events["at"], first),
        "first_run_at": _take(events["run_at"], first),
        "payload_bytes": _take(events["payload_bytes"], first),
    }
    columns |= details_of(_take(events["detail"], first))._asdict()
    goes_on = pa.array(events.goes_on())
    if len(events.rows):
        columns = {
            name: pc.if_else(goes_on, events.before(name), own) for name, own in columns.items()
        }
    return columns


def _of_leases(events: _Ordered, attempts: pa.Table, lives: _Places) -> dict[str, pa.Array]:
    leased = events.leases()
    latest = events.last(leased)
    count = len(events.starts)
    ended = _take(events["run_us"], _ends_of_running(events))
    run_us = _plus(_sums(_chunk(attempts, "run_us"), lives, count), ended)
    wait_us = _sums(_chunk(attempts, "wait_us"), lives, count)
    return {
        "started_at": pc.coalesce(
            events.before("started_at"), _take(events["at"], events.first(leased))
        ),
        "assignee": _latest(events, "assignee", "worker", latest),
        "assigned_at": _latest(events, "assigned_at", "at", latest),
        "wait_us": _plus(wait_us, events.before("wait_us")),
        "run_us": _plus(run_us, events.before("run_us")),
    }


def _finalized_at(events: _Ordered) -> pa.Array:
    """When the life ended. `headrace.history.stays_ended`: some changes of an ended job are no news."""
    terminal = events.among("after", TERMINAL)
    completed = events.where(pc.equal(events["after"], State.COMPLETED))
    stays = events.among("before", TERMINAL) & ~completed
    telling = events.last(np.flatnonzero(~stays))
    ends = (telling != _NONE) & terminal[np.maximum(telling, 0)] if len(terminal) else telling > 0
    told = _take(events["at"], np.where(ends, telling, _NONE))
    return pc.if_else(pa.array(telling != _NONE), told, events.before("finalized_at"))


def _updated_at(events: _Ordered) -> pa.Array:
    """The last change of state; an update is none."""
    changed = events.last(np.flatnonzero(~events.updates))
    own = _take(events["at"], np.where(changed == _NONE, events.starts, changed))
    since = pa.array((changed == _NONE) & events.goes_on())
    return pc.if_else(since, events.before("updated_at"), own)


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


# --- levels --------------------------------------------------------------------------------------

WAITING = frozenset(State) - TERMINAL - LEASED
"""Neither ended nor leased: blocked, due later, or ready."""
_MINUTE_US = 60_000_000


def _levels(events: _Ordered) -> pa.Table:
    """By how much each event moves its queue's levels, and each moment at which a job becomes due.

    A job counts as ready once it is claimable and due: at its event, or later if nothing changes it before.
    """
    if not len(events.life):
        return LEVELS.empty_table()
    at, due, after = _before_and_now(events)
    first, last = events.begins, np.append(events.begins[1:], [True])

    def shifted(values: npt.NDArray[Any], before: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Of each event, what was so until then."""
        earlier = np.append(values[:1], values[:-1])
        earlier[first] = before
        return earlier

    changes: dict[str, npt.NDArray[np.int64]] = {}
    for name, states in (("waiting", WAITING), ("running", LEASED)):
        now, before = after(states)
        changes[name] = now.astype(np.int64) - shifted(now, before)
    claimable, was = after(CLAIMABLE)
    ready_before = shifted(claimable, was) & (shifted(due.now, due.before) <= at.now)
    changes["ready"] = (claimable & (due.now <= at.now)).astype(np.int64) - ready_before
    # What becomes due by the mere passing of time, unless something happens to it before.
    left = np.append(at.now[1:], at.now[:1])
    later = claimable & (due.now > at.now) & (last | (due.now <= left))
    # Of a job's row it was told that it becomes due; now something has happened to it before.
    earlier = at.now[events.starts]
    foiled = was & (due.before > at.before) & (due.before > earlier)
    whose = np.arange(len(at.now))
    lanes = np.concatenate([whose, whose[later], events.starts[foiled]])
    none, taken_back = np.zeros(int(later.sum()), np.int64), np.zeros(int(foiled.sum()), np.int64)
    table = pa.table(
        {
            "queue": events["queue"].take(pa.array(lanes)),
            "minute": _minutes(np.concatenate([at.now, due.now[later], due.before[foiled]])),
            "waiting": np.concatenate([changes["waiting"], none, taken_back]),
            "ready": np.concatenate([changes["ready"], none + 1, taken_back - 1]),
            "running": np.concatenate([changes["running"], none, taken_back]),
            "changes": np.concatenate([np.ones(len(whose), np.int64), none + 1, taken_back - 1]),
        }
    )
    moved = pc.or_(
        pc.or_(pc.not_equal(table["waiting"], 0), pc.not_equal(table["ready"], 0)),
        pc.not_equal(table["running"], 0),
    )
    return levels_summed(table.filter(moved))


class _Moments(NamedTuple):
    """Microseconds."""

    now: npt.NDArray[np.int64]
    """Of each event."""
    before: npt.NDArray[np.int64]
    """Of each life's row."""


def _before_and_now(events: _Ordered) -> tuple[_Moments, _Moments, Any]:
    """When each event happened and when its job is due then, and a function that says what state it is in."""

    def moments(now: str, before: str) -> _Moments:
        row = pc.fill_null(events.before(before).cast(pa.int64()), 0).to_numpy()
        return _Moments(events[now].cast(pa.int64()).to_numpy(), row)

    def after(states: frozenset[State]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        words = pa.array(sorted(states), pa.string())
        return (
            events.among("after", states),
            _Ordered.where(pc.is_in(events.before("state"), value_set=words)),
        )

    return moments("at", "last_at"), moments("run_at", "run_at"), after


def _minutes(moments_us: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(moments_us - moments_us % _MINUTE_US).cast(TIME)


def levels_summed(levels: pa.Table) -> pa.Table:
    """One row per queue and minute; those that come to nothing are left out (schema LEVELS)."""
    names = ["waiting", "ready", "running", "changes"]
    if not len(levels):
        return LEVELS.empty_table()
    summed = levels.group_by(["queue", "minute"]).aggregate([(name, "sum") for name in names])
    summed = summed.rename_columns(["queue", "minute", *names]).select(LEVELS.names)
    some = [pc.not_equal(summed[name], 0) for name in names]
    return summed.filter(pc.or_(pc.or_(some[0], some[1]), pc.or_(some[2], some[3]))).cast(LEVELS)


def taken_back(levels: pa.Table) -> pa.Table:
    """The same levels with the opposite sign."""
    return pa.table(
        [
            column if field.name in ("queue", "minute") else pc.negate(column)
            for field, column in zip(levels.schema, levels.columns, strict=True)
        ],
        schema=levels.schema,
    )


def _with(column: pa.Array, values: dict[int, Any], type_: pa.DataType) -> pa.Array:
    places = sorted(values)
    fresh = pa.array([values[place] for place in places], type_)
    index = np.arange(len(column))
    index[places] = len(column) + np.arange(len(places))
    return pa.concat_arrays([column.cast(type_), fresh]).take(pa.array(index))


def _plus(one: pa.Array, other: pa.Array) -> pa.Array:
    """Their sum, where one of them may be missing; null where both are."""
    return pc.if_else(pc.is_null(one), other, pc.add(one, pc.fill_null(other, 0)))


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
