"""Tags: which jobs have one, which of those are claimable, and which tag is the rarest.

The row of a job says which tags it has; `job_tags` and `ready_tags` are indexes on that. The second
holds a job only while it is claimable, in claim order, so that a claim by a rare tag is a probe.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headrace.clock import to_us
from headrace.model import CLAIMABLE, Change, Job
from headrace.stores.sqlite.bulk import Bulk
from headrace.stores.sqlite.session import Snapshot, Transaction
from headrace.stores.sqlite.sql import json_list, query

_ADD = Bulk("job_tag_add")
_REMOVE = Bulk("job_tag_remove")
_READY_ADD = Bulk("ready_tag_add")
_READY_REMOVE = Bulk("ready_tag_remove")
_JOBS_CAPPED = query("tag_jobs_capped")
_READY_CAPPED = query("tag_ready_capped")

_PROBE_MAX = 1000  # past this a tag is common, and how common does not matter


class Driver(NamedTuple):
    """How to go through the jobs that have every tag of a filter."""

    tag: str
    """The rarest: its jobs are walked."""
    others: str
    """The rest as a JSON list: each job found is checked for them."""


def enter(tx: Transaction, jobs: Iterable[tuple[Job, int]]) -> None:
    """Jobs come (each with its lane)."""
    tagged = [(job, lane) for job, lane in jobs if job.tags]
    if not tagged:
        return
    _ADD.run(tx.connection, [(tag, job.seq) for job, _ in tagged for tag in job.tags])
    ready = [entry for job, lane in tagged for entry in _entries(job, lane, job.seq)]
    _READY_ADD.run(tx.connection, ready)


def move(tx: Transaction, changes: Iterable[tuple[Change, int, int]]) -> None:
    """Jobs change (each with its lane and seq): keep `ready_tags` true."""
    gone: list[tuple[str, int, int, int]] = []
    come: list[tuple[str, int, int, int]] = []
    for change, lane, seq in changes:
        before, after = _entries(change.before, lane, seq), _entries(change.after, lane, seq)
        if before != after:
            gone += before
            come += after
    _READY_REMOVE.run(tx.connection, gone)
    _READY_ADD.run(tx.connection, come)


def replace(tx: Transaction, change: Change, seq: int, old: int, new: int) -> None:
    """A job is given other tags, or moves from the old lane to the new, in the same state."""
    before, after = change.before, change.after
    _REMOVE.run(tx.connection, [(tag, seq) for tag in set(before.tags) - set(after.tags)])
    _ADD.run(tx.connection, [(tag, seq) for tag in set(after.tags) - set(before.tags)])
    gone, come = set(_entries(before, old, seq)), set(_entries(after, new, seq))
    _READY_REMOVE.run(tx.connection, sorted(gone - come))
    _READY_ADD.run(tx.connection, sorted(come - gone))


def leave(tx: Transaction, jobs: Iterable[tuple[Job, int]]) -> None:
    """Jobs are deleted (each with its lane)."""
    placed = list(jobs)
    _REMOVE.run(tx.connection, [(tag, job.seq) for job, _ in placed for tag in job.tags])
    ready = [entry for job, lane in placed for entry in _entries(job, lane, job.seq)]
    _READY_REMOVE.run(tx.connection, ready)


def rarest(view: Snapshot, tags: Sequence[str]) -> Driver:
    """For reading: by all jobs."""
    return _rarest(view, tags, _JOBS_CAPPED)


def rarest_ready(view: Snapshot, tags: Sequence[str]) -> Driver:
    """For claiming: by claimable jobs."""
    return _rarest(view, tags, _READY_CAPPED)


def _rarest(view: Snapshot, tags: Sequence[str], probe: str) -> Driver:
    if len(tags) == 1:
        return Driver(tags[0], json_list([]))
    counts = {
        tag: int(view.connection.execute(probe, (tag, _PROBE_MAX)).fetchone()[0])
        for tag in dict.fromkeys(tags)
    }
    driver = min(counts, key=counts.__getitem__)
    return Driver(driver, json_list(tag for tag in counts if tag != driver))


def _entries(job: Job, lane: int, seq: int) -> list[tuple[str, int, int, int]]:
    """The rows of `ready_tags` that the job has in this state."""
    if job.state not in CLAIMABLE:
        return []
    run_at = to_us(job.run_at)
    return [(tag, lane, run_at, seq) for tag in job.tags]
