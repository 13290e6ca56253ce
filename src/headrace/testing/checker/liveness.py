"""That the work gets done once the faults have stopped."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.testing.checker.histories import Breach, History


def drained(history: History) -> Iterator[Breach]:
    """Every job has ended.

    How soon is for whoever watched to say: a history has no stopwatch.
    """
    for job in history.jobs.values():
        if not job.is_terminal:
            yield Breach(job.id, f"it is {job.state}")
