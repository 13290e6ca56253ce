"""Rows that differ only in id, key, due time and payload: checked once for all of them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark.sink.message import GroupKey
from headrace.spark.sink.payloads import texts_or_null
from headrace.spark.sink.rows import Batch

if TYPE_CHECKING:
    from headrace.manager import JobManager
    from headrace.manager.placement import Draft
    from headrace.spec import JobSpec

COMMON = ("type", "queue", "tenant", "priority", "tags")
"""The columns by which rows are of one group."""

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


def groups_of(batch: Batch) -> tuple[Numbers, list[int]]:
    """For each row the number of its group, and for each group the place of one of its rows."""
    codes: Numbers = np.zeros(len(batch), np.int64)
    for name in COMMON:
        column = batch.columns.get(name)
        if column is None or pa.types.is_null(column.type):
            continue
        if pa.types.is_nested(column.type):
            column = _told_apart(column)
        encoded = column.dictionary_encode()
        distinct = len(encoded.dictionary)
        if distinct == 1 and not column.null_count:
            continue
        own = pc.fill_null(encoded.indices.cast(pa.int64()), distinct).to_numpy()
        # Numbered anew each time: the product of all sizes might not fit.
        _, codes = np.unique(codes * (distinct + 1) + own, return_inverse=True)
    _, places, numbers = np.unique(codes, return_index=True, return_inverse=True)
    return numbers, places.tolist()


def _told_apart(column: pa.Array) -> pa.Array:
    """A text for each row, by which equal ones are found."""
    try:
        return texts_or_null(column)
    except UnicodeDecodeError:  # somewhere in it: let each row be looked at by itself
        return pa.array(range(len(column)), pa.int64())


def key_of(draft: Draft) -> GroupKey:
    job = draft.job
    return GroupKey(job.tenant, job.queue, job.type, job.priority, job.tags)


def spec_of(key: GroupKey) -> JobSpec:
    from headrace.spec import JobSpec

    return JobSpec(
        tenant=key.tenant, queue=key.queue, type=key.type, priority=key.priority, tags=key.tags
    )


def draft_of(manager: JobManager, key: GroupKey, now: datetime) -> Draft:
    return manager.draft(spec_of(key), now)
