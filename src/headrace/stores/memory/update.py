"""What a job's user says of it, contents put into another form, and jobs deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from headrace.history import UPDATED
from headrace.model import Change, Job
from headrace.stores.base import Rewrite
from headrace.stores.memory import commit
from headrace.stores.memory.leases import given
from headrace.stores.memory.tables import Tables


def update(tables: Tables, changes: Sequence[Change]) -> list[bool]:
    answers = []
    for change in changes:
        current = commit.is_current(tables, change.before)
        if current:
            stored = tables.jobs[change.before.id]
            tables.jobs.update(updated(stored, change.after))
            tables.log.append(change.event)
        answers.append(current)
    if any(answers):
        tables.log.wake()
    return answers


def rewrite(tables: Tables, rewrites: Sequence[Rewrite]) -> list[bool]:
    answers = []
    for wanted in rewrites:
        job = tables.jobs.get(wanted.job_id)
        current = job is not None and job.version == wanted.version and not job.is_leased
        if job is not None and current:
            tables.jobs.touch(rewritten(job, wanted))
        answers.append(current)
    return answers


def delete(tables: Tables, versions: Mapping[str, int]) -> bool:
    present = [tables.jobs[job_id] for job_id in versions if job_id in tables.jobs]
    if any(job.version != versions[job.id] for job in present):
        return False
    for job in present:
        tables.jobs.remove(job)
        tables.keys.release(job, even_if_kept=True)
        tables.edges.forget_child(job.id)
    return True


def updated(stored: Job, after: Job) -> Job:
    """The job with what an update says of it."""
    said = {name: getattr(after, name) for name in ("version", *UPDATED)}
    return replace(stored, **said)


def rewritten(job: Job, rewrite: Rewrite) -> Job:
    """The job with what is given. A failure's message is replaced only where there is a failure."""
    said = given(rewrite)
    message = said.pop("failure_message", None)
    if message is not None and job.failure is not None:
        said["failure"] = replace(job.failure, message=message)
    return replace(job, **said)
