"""The application: register functions as tasks, submit calls of them as jobs, get their results."""

from headrace.app.application import Headrace
from headrace.app.context import Context, SyncContext
from headrace.app.middleware import Middleware
from headrace.app.observers import Observer
from headrace.app.options import Options, TaskOptions
from headrace.app.results import BatchResult
from headrace.app.task import Isolation, Task

__all__ = [
    "BatchResult",
    "Context",
    "Headrace",
    "Isolation",
    "Middleware",
    "Observer",
    "Options",
    "SyncContext",
    "Task",
    "TaskOptions",
]
