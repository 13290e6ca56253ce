"""Jobs and events, as the verbs of a store give them, in columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa

from headrace.model import Event, Job


def events_batch(events: Sequence[Event], columns: pa.Schema) -> pa.RecordBatch:
    return _batch(events, columns, _OF_EVENT)


def jobs_batch(jobs: Sequence[Job], columns: pa.Schema) -> pa.RecordBatch:
    return _batch(jobs, columns, _OF_JOB)


def _batch(
    rows: Sequence[Any], columns: pa.Schema, special: Mapping[str, Callable[[Any], Any]]
) -> pa.RecordBatch:
    arrays = []
    for field in columns:
        value = special.get(field.name) or attrgetter(field.name)
        arrays.append(pa.array(map(value, rows), field.type, size=len(rows)))
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def _of_failure(name: str) -> Callable[[Job], Any]:
    return lambda job: None if job.failure is None else getattr(job.failure, name)


_OF_EVENT: Mapping[str, Callable[[Any], Any]] = {"detail": attrgetter("detail_json")}
_OF_JOB: Mapping[str, Callable[[Any], Any]] = {
    **{
        name: attrgetter(f"{name}_json")
        for name in ("payload", "result", "checkpoint", "log", "backoff")
    },
    **{name: _of_failure(name) for name in ("category", "code", "message")},
}
