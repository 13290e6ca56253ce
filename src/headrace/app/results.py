"""What became of the jobs of a batch, one by one: the results as the types that their tasks return."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from headrace.completion import Role
from headrace.envelope import is_sealed
from headrace.manager import JobManager
from headrace.model import TERMINAL, Failure, Job, State
from headrace.redaction import Redacted

if TYPE_CHECKING:
    from headrace.app.task import Task


class BatchResult(Redacted, frozen=True, kw_only=True):
    """How one job of a batch ended."""

    job_id: str
    type: str
    state: State
    result: Any
    """What its handler returned; None unless it completed. Without the key to it: a `Sealed`."""
    failure: Failure | None
    """Why it did not complete, as far as that is known."""

    @property
    def completed(self) -> bool:
        return self.state is State.COMPLETED


async def batch_results(
    jobs: JobManager, batch_id: str, find_task: Callable[[str], Task[..., Any] | None]
) -> AsyncIterator[BatchResult]:
    """Of every job of the batch that has ended, in the order they were submitted in."""
    async for job in jobs.find(tags=(Role.MEMBER.of(batch_id),), states=TERMINAL):
        yield _result(job, find_task(job.type))


def _result(job: Job, task: Task[..., Any] | None) -> BatchResult:
    completed = job.state is State.COMPLETED
    return BatchResult(
        job_id=job.id,
        type=job.type,
        state=job.state,
        result=result_of(job, task) if completed else None,
        failure=None if completed else job.failure,
    )


def result_of(job: Job, task: Task[..., Any] | None) -> Any:
    """The result of a completed job. What cannot be decrypted stays as it is."""
    if task is None or is_sealed(job.result_json):
        return job.result
    return task.arguments.result(job.result)
