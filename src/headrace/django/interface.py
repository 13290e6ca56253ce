"""Django's interface of tasks: that of Django 6, and for older ones that of the package django-tasks.

Both have the same names but for one error. Neither is imported anywhere else.
"""

from __future__ import annotations

import importlib
from typing import Any


def _found() -> str:
    for name in ("django.tasks", "django_tasks"):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        return name
    raise ImportError(
        "Django's tasks need Django 6, or the package django-tasks beside an older one"
    )


_NAME = _found()
_base: Any = importlib.import_module(f"{_NAME}.base")
_backends: Any = importlib.import_module(f"{_NAME}.backends.base")
_exceptions: Any = importlib.import_module(f"{_NAME}.exceptions")

signals: Any = importlib.import_module(f"{_NAME}.signals")
task_backends: Any = importlib.import_module(_NAME).task_backends
BaseTaskBackend: Any = _backends.BaseTaskBackend
Task: Any = _base.Task
TaskContext: Any = _base.TaskContext
TaskError: Any = _base.TaskError
TaskResult: Any = _base.TaskResult
TaskResultStatus: Any = _base.TaskResultStatus
TaskResultDoesNotExist: Any = _exceptions.TaskResultDoesNotExist
