"""The event log as a stream: whole, in order, and the same for every reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from headrace.testing.checker.histories import Breach, History


def gap_free(history: History) -> Iterator[Breach]:
    """No event is missing, none stands twice, those of a job are in order, and any cursor resumes there."""
    yield from _repeated(history)
    for job_id, placed in history.of_job.items():
        versions = [event.version for _, event in placed]
        if versions != list(range(1, len(versions) + 1)):
            yield Breach(job_id, f"its events have the versions {versions}")
        job = history.jobs.get(job_id)
        if job is not None and job.version != len(versions):
            yield Breach(job_id, f"it is at version {job.version} and has {len(versions)} events")
    yield from _misread(history)


def _repeated(history: History) -> Iterator[Breach]:
    for what, counts in (
        ("number", Counter(str(event.seq) for event in history.events)),
        ("cursor", Counter(event.cursor for event in history.events)),
    ):
        for value, count in counts.items():
            if count > 1:
                yield Breach(None, f"{count} events have the {what} {value}")


def _misread(history: History) -> Iterator[Breach]:
    start_after = {"": 0} | {event.cursor: place + 1 for place, event in enumerate(history.events)}
    seqs = [event.seq for event in history.events]
    for reading in history.readings:
        start = start_after.get(reading.after)
        if start is None:
            yield Breach(
                None, f"a reader was given the cursor {reading.after!r}, which is no event's"
            )
            continue
        expected = seqs[start : start + len(reading.seqs)]
        for place, (wanted, seen) in enumerate(zip(expected, reading.seqs, strict=False)):
            if wanted != seen:
                yield Breach(
                    None,
                    f"a reader after {reading.after!r} saw event {seen} in place {place}, not {wanted}",
                )
                break
        else:
            if len(reading.seqs) > len(expected):
                yield Breach(None, f"a reader after {reading.after!r} saw more than there is")
