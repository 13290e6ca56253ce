"""Jobs as Django's results of tasks."""

from __future__ import annotations

from typing import Any

from django.utils.module_loading import import_string

from headrace.app import Headrace
from headrace.django.interface import Task, TaskError, TaskResult, TaskResultStatus
from headrace.envelope import is_sealed
from headrace.errors import JobNotFound
from headrace.model import LEASED, EventKind, Job, State

RAISED = "the task raised"
"""Of a line in the job's log that names the class of what an attempt raised."""
_ATTEMPTS_MAX = 100
_EVENTS_PAGE = 1000


class Results:
    """What the store knows of enqueued tasks."""

    def __init__(self, app: Headrace, alias: str) -> None:
        self._app = app
        self._alias = alias

    async def read(self, job_id: str) -> Any:
        """The result with this id. Raises JobNotFound, also for a job that is no task of Django's."""
        manager = await self._app.manager()
        job = await manager.get(job_id)
        task = task_of(job)
        events = await manager.events(job_id=job.id, limit=_EVENTS_PAGE)
        workers = [event.worker or "" for event in events if event.kind is EventKind.LEASED]
        failed = await manager.failed_attempts(job.id, limit=_ATTEMPTS_MAX)
        raised = {
            line["attempt"]: line["fields"]["exception"]
            for line in ([] if is_sealed(job.log_json) else job.log)
            if line["text"] == RAISED
        }
        errors = [
            TaskError(
                exception_class_path=raised.get(one.attempt, "builtins.RuntimeError"),
                traceback=one.traceback or one.told,
            )
            for one in failed
        ]
        return result_of(task, job, self._alias, errors=errors, workers=workers)


def result_of(
    task: Any,
    job: Job,
    alias: str,
    *,
    errors: list[Any] | None = None,
    workers: list[str] | None = None,
) -> Any:
    payload = job.payload or {}
    result = TaskResult(
        task=task,
        id=job.id,
        status=_status(job.state),
        enqueued_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finalized_at,
        last_attempted_at=job.assigned_at,
        args=payload.get("args", []),
        kwargs=payload.get("kwargs", {}),
        backend=alias,
        errors=errors or [],
        worker_ids=workers if workers is not None else [job.assignee or ""] * job.attempt,
    )
    if job.state is State.COMPLETED:
        object.__setattr__(result, "_return_value", job.result)
    return result


def task_of(job: Job) -> Any:
    """The task of Django's that the job is a call of. Raises JobNotFound where it is not."""
    try:
        found = import_string(job.type)
    except ImportError:
        found = None
    if not isinstance(found, Task):
        raise JobNotFound(f"job {job.id} is no call of a task of Django's")
    return found


def path_of(task: Any) -> str:
    return str(task.module_path)


def _status(state: State) -> Any:
    if state is State.COMPLETED:
        return TaskResultStatus.SUCCESSFUL
    if state in LEASED:
        return TaskResultStatus.RUNNING
    if state in (State.FAILED, State.DEAD, State.CANCELLED, State.ABANDONED):
        return TaskResultStatus.FAILED
    return TaskResultStatus.READY
