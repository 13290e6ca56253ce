"""Inserting: all of it or nothing, and nothing if the world is not as the insertion took it to be."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from headrace.model import TERMINAL, State
from headrace.stores.base import Clash, Inserted, Insertion, Kin
from headrace.stores.sqlite import graph, keys, leases, log, read, tags
from headrace.stores.sqlite.bulk import Bulk, Wide
from headrace.stores.sqlite.lanes import Moves
from headrace.stores.sqlite.rows import STATE_OF, insert_columns
from headrace.stores.sqlite.session import Snapshot, Transaction
from headrace.stores.sqlite.sql import json_list, query

_LAST_SEQ = query("insert_last_seq")
_KIN = query("insert_kin")
_IDS_STORED = query("insert_ids_stored")
_PARENTS = query("insert_parents")
_JOB_ADD = Wide("job_add")
_PAYLOAD_ADD = Bulk("payload_add")


def insert(tx: Transaction, insertion: Insertion) -> Inserted | Clash:
    clash = _clash(tx, insertion)
    if clash is not None:
        return clash
    lanes = [tx.lanes.of(job) for job in insertion.jobs]
    seqs = _add_one(tx, insertion, lanes) if len(lanes) == 1 else _add_all(tx, insertion, lanes)
    if isinstance(seqs, Clash):
        return seqs
    jobs = [replace(job, seq=seq) for job, seq in zip(insertion.jobs, seqs, strict=True)]
    placed = list(zip(jobs, lanes, strict=True))
    moves = Moves()
    for job, lane in placed:
        moves.enter(lane, job.state, job.failures)
    _PAYLOAD_ADD.run(tx.connection, [(job.seq, job.payload_json) for job in jobs])
    log.append(tx, insertion.events, seqs)
    moves.write(tx.connection)
    tags.enter(tx, placed)
    graph.add(tx, insertion.edges)
    keys.hold(tx, insertion.keys)
    return Inserted(jobs)


def _add_all(tx: Transaction, insertion: Insertion, lanes: Sequence[int]) -> list[int] | Clash:
    """The rows, and their seqs. Of several statements the last may fail: so the ids are looked at before."""
    if taken := _taken(tx, insertion):
        return Clash(ids=taken)
    (last,) = tx.connection.execute(_LAST_SEQ).fetchone()
    seqs = list(range(last + 1, last + 1 + len(lanes)))
    _JOB_ADD.run(tx.connection, insert_columns(insertion.jobs, seqs, lanes))
    return seqs


def _add_one(tx: Transaction, insertion: Insertion, lanes: Sequence[int]) -> list[int] | Clash:
    """As `_add_all`, by a single statement: what it finds in its way, or which seq it was given, it tells."""
    try:
        return [_JOB_ADD.run(tx.connection, insert_columns(insertion.jobs, [None], lanes))]
    except sqlite3.IntegrityError:
        taken = _taken(tx, insertion)
        if not taken:
            raise
        (job,), (lane,) = insertion.jobs, lanes
        if job.limit_key is not None:
            tx.lanes.remove(lane)  # it may have come with this job
        return Clash(ids=taken)


def _clash(view: Snapshot, insertion: Insertion) -> Clash | None:
    """The first kind of clash, if any, in the order fence, parents, kin, ids, keys.

    Ids are looked at only if there is a clash behind them: adding the jobs will tell.
    """
    if insertion.fence is not None and not leases.holds(view, insertion.fence, insertion.now):
        return Clash(fence=True)
    if moved := _moved(view, insertion.parents):
        return Clash(parents=moved)
    if grown := _grown(view, insertion.kin):
        return Clash(kin=grown)
    scopes = [hold.scope for hold in insertion.keys]
    held = read.keyed(view, scopes, insertion.now)
    if not held:
        return None
    taken = _taken(view, insertion)
    return Clash(ids=taken) if taken else Clash(keys=[scope for scope in scopes if scope in held])


def _moved(view: Snapshot, parents: Mapping[str, State | None]) -> list[str]:
    """Parents that are gone, or stand otherwise than they were read."""
    if not parents:
        return []
    rows = view.connection.execute(_PARENTS, (json_list(parents),)).fetchall()
    states = {job_id: STATE_OF[state] for job_id, state in rows}
    return [
        parent_id
        for parent_id, outcome in parents.items()
        if parent_id not in states or _outcome(states[parent_id]) is not outcome
    ]


def _grown(view: Snapshot, kin: Mapping[str, Kin]) -> list[str]:
    """Jobs around which the graph is not as it was read."""
    if not kin:
        return []
    wanted = [
        (job_id, one.version, one.parents_max, one.joins, one.spawned)
        for job_id, one in kin.items()
    ]
    rows = view.connection.execute(_KIN, (msgspec.json.encode(wanted).decode(),))
    return [job_id for (job_id,) in rows]


def _outcome(state: State) -> State | None:
    return state if state in TERMINAL else None


def _taken(view: Snapshot, insertion: Insertion) -> list[str]:
    """Ids that are stored already, or that the batch gives twice."""
    ids = [job.id for job in insertion.jobs]
    rows = view.connection.execute(_IDS_STORED, (json_list(ids),)).fetchall()
    stored = {job_id for (job_id,) in rows}
    if len(set(ids)) < len(ids):
        stored |= {job_id for job_id, times in Counter(ids).items() if times > 1}
    return [job_id for job_id in dict.fromkeys(ids) if job_id in stored] if stored else []
