"""Headrace: a durable job queue. Jobs are leased under a fencing token, and every change is an event."""

from headrace.app import BatchResult, Context, Headrace, Middleware, SyncContext, Task
from headrace.app.inputs import result_of, results_of
from headrace.app.workflows import chain, group
from headrace.connect import connect
from headrace.crypto import KeyRing
from headrace.errors import HeadraceError, PermanentError, Snooze, TemporaryError
from headrace.manager import JobManager
from headrace.model import Category, Dependency, DependencyKind, Event, Job, Priority, State
from headrace.policy import CancelMode, Policies, Policy
from headrace.schedules import Cron, Every, Misfire, Schedule
from headrace.spec import JobSpec
from headrace.version import VERSION
from headrace.worker import Settings as WorkerSettings
from headrace.worker import Worker

__version__ = VERSION

__all__ = [
    "BatchResult",
    "CancelMode",
    "Category",
    "Context",
    "Cron",
    "Dependency",
    "DependencyKind",
    "Event",
    "Every",
    "Headrace",
    "HeadraceError",
    "Job",
    "JobManager",
    "JobSpec",
    "KeyRing",
    "Middleware",
    "Misfire",
    "PermanentError",
    "Policies",
    "Policy",
    "Priority",
    "Schedule",
    "Snooze",
    "State",
    "SyncContext",
    "Task",
    "TemporaryError",
    "Worker",
    "WorkerSettings",
    "chain",
    "connect",
    "group",
    "result_of",
    "results_of",
]
