"""Inserting: all of it or nothing, and nothing if the world is not as the insertion took it to be."""

from __future__ import annotations

from headrace.model import TERMINAL, Job, State
from headrace.stores.base import Clash, Inserted, Insertion, Kin
from headrace.stores.memory import leases
from headrace.stores.memory.tables import Tables


def insert(tables: Tables, insertion: Insertion) -> Inserted | Clash:
    clash = _clash(tables, insertion)
    if clash is not None:
        return clash
    stored = []
    for job, event in zip(insertion.jobs, insertion.events, strict=True):
        stored.append(tables.jobs.add(job))
        tables.log.append(event)
    tables.edges.add(insertion.edges)
    tables.keys.hold(insertion.keys)
    tables.log.wake()
    return Inserted(stored)


def _clash(tables: Tables, insertion: Insertion) -> Clash | None:
    """The first kind of clash, if any, in the order fence, parents, kin, ids, keys."""
    now = insertion.now
    if insertion.fence is not None and not leases.holds(tables, insertion.fence, now):
        return Clash(fence=True)
    moved = [
        parent_id
        for parent_id, outcome in insertion.parents.items()
        if (parent := tables.jobs.get(parent_id)) is None or _outcome(parent) is not outcome
    ]
    if moved:
        return Clash(parents=moved)
    grown = [job_id for job_id, kin in insertion.kin.items() if not is_as_read(tables, job_id, kin)]
    if grown:
        return Clash(kin=grown)
    ids = [job.id for job in insertion.jobs if job.id in tables.jobs]
    if ids:
        return Clash(ids=ids)
    held = [hold.scope for hold in insertion.keys if tables.keys.holder(hold.scope, now)]
    return Clash(keys=held) if held else None


def is_as_read(tables: Tables, job_id: str, kin: Kin) -> bool:
    """Whether the graph around a stored job is as the insertion has relied on it."""
    job = tables.jobs.get(job_id)
    if kin.version is not None and (job is None or job.version != kin.version):
        return False
    if kin.parents_max is not None and tables.edges.count_into(job_id) > kin.parents_max:
        return False
    joins = () if kin.joins is None else tables.edges.joins_of(job_id)
    spawned = () if kin.spawned is None else tables.jobs.spawned(job_id)
    return set(joins) <= set(kin.joins or ()) and {one.id for one in spawned} <= set(
        kin.spawned or ()
    )


def _outcome(job: Job) -> State | None:
    return job.state if job.state in TERMINAL else None
