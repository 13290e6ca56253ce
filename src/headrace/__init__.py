"""Headrace: a durable job queue. Jobs are leased under a fencing token, and every change is an event."""

from headrace.connect import connect
from headrace.crypto import KeyRing
from headrace.errors import HeadraceError, PermanentError, TemporaryError
from headrace.manager import JobManager
from headrace.model import Category, Dependency, DependencyKind, Event, Job, Priority, State
from headrace.policy import CancelMode, Policies, Policy
from headrace.spec import JobSpec

__version__ = "0.1.0"

__all__ = [
    "CancelMode",
    "Category",
    "Dependency",
    "DependencyKind",
    "Event",
    "HeadraceError",
    "Job",
    "JobManager",
    "JobSpec",
    "KeyRing",
    "PermanentError",
    "Policies",
    "Policy",
    "Priority",
    "State",
    "TemporaryError",
    "connect",
]
