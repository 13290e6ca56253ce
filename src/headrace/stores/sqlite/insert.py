"""Inserting: all of it or nothing, and nothing if the world is not as the insertion took it to be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from headrace.model import TERMINAL, Job, State
from headrace.stores.base import Clash, Inserted, Insertion, Kin
from headrace.stores.sqlite import graph, keys, leases, log, read, tags
from headrace.stores.sqlite.bulk import Bulk
from headrace.stores.sqlite.lanes import Moves
from headrace.stores.sqlite.rows import STATE_OF, insert_parameters
from headrace.stores.sqlite.session import Snapshot, Transaction
from headrace.stores.sqlite.sql import json_list, query

_LAST_SEQ = query("insert_last_seq")
_KIN = query("insert_kin")
_IDS_STORED = query("insert_ids_stored")
_PARENTS = query("insert_parents")
_JOB_ADD = Bulk("job_add")
_PAYLOAD_ADD = Bulk("payload_add")


def insert(tx: Transaction, insertion: Insertion) -> Inserted | Clash:
    clash = _clash(tx, insertion)
    if clash is not None:
        return clash
    jobs = _numbered(tx, insertion)
    moves = Moves()
    lanes = [tx.lanes.of(job) for job in jobs]
    for job, lane in zip(jobs, lanes, strict=True):
        moves.enter(lane, job.state, job.failures)
    placed = list(zip(jobs, lanes, strict=True))
    _JOB_ADD.run(tx.connection, [insert_parameters(job, lane) for job, lane in placed])
    _PAYLOAD_ADD.run(tx.connection, [(job.seq, job.payload_json) for job in jobs])
    log.append(tx, [(event, job.seq) for event, job in zip(insertion.events, jobs, strict=True)])
    moves.write(tx.connection)
    tags.enter(tx, placed)
    graph.add(tx, insertion.edges)
    keys.hold(tx, insertion.keys)
    return Inserted(jobs)


def _numbered(tx: Transaction, insertion: Insertion) -> list[Job]:
    (last,) = tx.connection.execute(_LAST_SEQ).fetchone()
    return [replace(job, seq=seq) for seq, job in enumerate(insertion.jobs, start=last + 1)]


def _clash(view: Snapshot, insertion: Insertion) -> Clash | None:
    """The first kind of clash, if any, in the order fence, parents, kin, ids, keys."""
    if insertion.fence is not None and not leases.holds(view, insertion.fence, insertion.now):
        return Clash(fence=True)
    if moved := _moved(view, insertion.parents):
        return Clash(parents=moved)
    if grown := _grown(view, insertion.kin):
        return Clash(kin=grown)
    if taken := _taken(view, insertion):
        return Clash(ids=taken)
    scopes = [hold.scope for hold in insertion.keys]
    held = read.keyed(view, scopes, insertion.now)
    return Clash(keys=[scope for scope in scopes if scope in held]) if held else None


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
