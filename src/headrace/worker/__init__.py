"""The worker: runs the jobs of an application, in this process."""

from headrace.worker.settings import Settings
from headrace.worker.worker import Worker

__all__ = ["Settings", "Worker"]
