"""What a project does with its tasks, run in a process of its own: settings belong to the process."""

import asyncio
import os
import sys
from datetime import datetime, timedelta, timezone

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")

import django

django.setup()

from django.db import transaction
from shop import tasks

from headrace.django.interface import TaskResultDoesNotExist, TaskResultStatus, signals
from headrace.django.worker import app
from headrace.worker import Worker


def drain() -> int:
    return asyncio.run(Worker(app).drain())


def results() -> None:
    told: list[tuple[str, str]] = []
    keep = [
        lambda sender, task_result, name=name, **_: told.append((name, task_result.status.value))
        for name in ("task_enqueued", "task_started", "task_finished")
    ]
    for name, receiver in zip(
        ("task_enqueued", "task_started", "task_finished"), keep, strict=True
    ):
        getattr(signals, name).connect(receiver)
    summed = tasks.total.enqueue(1, 2, 3, currency="CHF")
    assert summed.status is TaskResultStatus.READY, summed
    assert summed.args == [1, 2, 3]
    assert summed.enqueued_at is not None
    greeted = asyncio.run(tasks.greet.aenqueue(name="Ada"))
    later = tasks.total.using(run_after=datetime.now(timezone.utc) + timedelta(hours=1)).enqueue(7)
    attempt = tasks.which.enqueue()
    assert drain() == 3
    summed.refresh()
    assert (summed.status, summed.return_value) == (TaskResultStatus.SUCCESSFUL, "6 CHF")
    assert summed.attempts == 1 and summed.finished_at >= summed.started_at
    assert tasks.greet.get_result(greeted.id).return_value == "Hello, Ada!"
    assert asyncio.run(tasks.greet.aget_result(greeted.id)).return_value == "Hello, Ada!"
    assert tasks.which.get_result(attempt.id).return_value == [1, attempt.id]
    assert tasks.total.get_result(later.id).status is TaskResultStatus.READY
    assert ("task_finished", "SUCCESSFUL") in told and ("task_started", "RUNNING") in told
    try:
        tasks.total.get_result("unknown")
    except TaskResultDoesNotExist:
        pass
    else:
        raise AssertionError("an unknown id gave a result")


def failures() -> None:
    failed = tasks.fail.enqueue("no such order")
    assert drain() == 1
    failed.refresh()
    assert failed.status is TaskResultStatus.FAILED, failed.status
    (error,) = failed.errors
    assert error.exception_class is LookupError, error
    assert "raise LookupError(reason)" in error.traceback


def transactions() -> None:
    class Undone(Exception):
        pass

    with transaction.atomic():
        kept = tasks.total.enqueue(1)
    try:
        with transaction.atomic():
            undone = tasks.total.enqueue(2)
            raise Undone
    except Undone:
        pass
    assert drain() == 1
    assert tasks.total.get_result(kept.id).return_value == "1 EUR"
    try:
        tasks.total.get_result(undone.id)
    except TaskResultDoesNotExist:
        pass
    else:
        raise AssertionError("what was rolled back is there")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
    print("Django", django.get_version(), *sys.argv[1:])
