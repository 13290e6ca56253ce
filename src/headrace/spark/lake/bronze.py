"""Bronze: events as they came, each once.

The rows of a file are sorted by the bucket of their job, with row groups that begin and end with buckets: so
a task that folds the jobs of some buckets reads theirs and no others.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import AddAction

from headrace.model import EventKind
from headrace.spark.lake.delta import Folder, read_files, read_range
from headrace.spark.lake.storage import Storage
from headrace.spark.lake.table import Check, Table, columns_of, folder_of
from headrace.spark.schemas import EVENTS, meanings

BUCKETS = 64
"""Fixed once and for all: the files of a lake are laid out by it."""
BATCH = "headrace batch"
"""The mark that numbers the lake's batches."""
HELD_BYTES_MAX = 64 * 1024 * 1024
"""Of events in the memory of a task; then they are written."""
GROUP_ROWS_MIN = 4096

SCHEMA = (
    EVENTS.append(pa.field("bucket", pa.int32()))
    .append(pa.field("on", pa.date32()))
    .append(pa.field("batch", pa.int64()))
)

EVENTS_TABLE = Table(
    name="bronze/events",
    grain="One row per change of a job, as the store's event log tells it.",
    key=("seq",),
    columns=columns_of(
        SCHEMA,
        {
            **meanings("events"),
            "bucket": "The bucket of its job, 0 to 63: the files are sorted by it.",
            "on": "The day it happened, UTC; the table is partitioned by it.",
            "batch": "The batch that brought it.",
        },
    ),
    partition_by=("on",),
    checks=(
        Check(
            "every job's life begins with its enqueued event",
            """SELECT * FROM bronze_events
            WHERE (kind = 'enqueued') <> (before IS NULL) OR (kind = 'enqueued') <> (version = 1)""",
        ),
    ),
)


def bronze_of(lake: Storage) -> Folder:
    return folder_of(lake, EVENTS_TABLE, SCHEMA)


def buckets_of(job_ids: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int32]:
    """The bucket of each job id: the same on every machine, and for ever."""
    coded = job_ids.combine_chunks() if isinstance(job_ids, pa.ChunkedArray) else job_ids
    coded = coded.dictionary_encode()
    known = np.fromiter(
        (zlib.crc32(job_id.encode()) % BUCKETS for job_id in coded.dictionary.to_pylist()),
        np.int32,
        len(coded.dictionary),
    )
    return np.asarray(known[coded.indices.to_numpy()], np.int32)


def events_of(lake: Storage, job_id: str) -> pa.Table:
    """All events of a job, in order. Of each file, the row groups of its bucket are read."""
    folder = bronze_of(lake)
    bucket = int(buckets_of(pa.array([job_id]))[0])
    found = [EVENTS.empty_table()]
    for file in folder.snapshot().files:
        rows = read_range(folder.storage, file.path, EVENTS, "bucket", (bucket, bucket))
        found.append(rows.filter(pc.equal(rows["job_id"], job_id)))
    return pa.concat_tables(found).sort_by("seq")


class Held(NamedTuple):
    """A file of bronze, as tasks that look for repeats need to know it."""

    path: str
    low_seq: int
    high_seq: int


class Last(NamedTuple):
    """An event, as it is known again."""

    cursor: str
    job_id: str
    version: int
    at_us: int


class Written(NamedTuple):
    """What one task has made of its part of the log."""

    actions: tuple[AddAction, ...]
    events: int
    """New ones."""
    repeated: int
    """That bronze holds already."""
    last: Last | None
    """The last event, in the order of the log."""
    tally: dict[str, int]
    """What the events come to: see `tally_of`."""


def write_events(
    lake: Storage, batch: int, held: tuple[Held, ...], batches: Iterable[pa.RecordBatch]
) -> Written:
    """Files with those of the events that bronze does not hold. No more than HELD_BYTES_MAX at once."""
    folder = bronze_of(lake)
    actions: list[AddAction] = []
    events = repeated = 0
    last: Last | None = None
    tally = tally_of(EVENTS.empty_table())
    seen = np.array([], np.int64)
    for told in _in_parts(batches):
        last = last_of(told)
        fresh = _unknown(told, lake, held, seen)
        repeated += told.num_rows - fresh.num_rows
        if not fresh.num_rows:
            continue
        events += fresh.num_rows
        seen = np.append(seen, fresh["seq"].to_numpy())
        tally = {name: count + tally[name] for name, count in tally_of(fresh).items()}
        actions += folder.write(_placed(fresh, batch), by_buckets)
    return Written(tuple(actions), events, repeated, last, tally)


def tally_of(events: pa.Table) -> dict[str, int]:
    """Counts that silver's must agree with."""
    kinds = events["kind"]

    def count(kind: EventKind) -> int:
        return int(pc.sum(pc.equal(kinds, kind), min_count=0).as_py())

    return {
        "events": events.num_rows,
        "lives": count(EventKind.ENQUEUED),
        "leases": count(EventKind.LEASED),
        "seqs": int(pc.sum(events["seq"], min_count=0).as_py()),
    }


def _in_parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    part: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        part.append(batch)
        size += batch.nbytes
        if size >= HELD_BYTES_MAX:
            yield pa.Table.from_batches(part).cast(EVENTS)
            part, size = [], 0
    if part:
        yield pa.Table.from_batches(part).cast(EVENTS)


def _placed(events: pa.Table, batch: int) -> pa.Table:
    """With the columns of the table, by bucket."""
    buckets = buckets_of(events["job_id"])
    order = np.argsort(buckets, kind="stable")
    rows = events.take(pa.array(order))
    return (
        rows.append_column("bucket", pa.array(buckets[order], pa.int32()))
        .append_column("on", rows["at"].cast(pa.date32()))
        .append_column("batch", pa.repeat(pa.scalar(batch, pa.int64()), rows.num_rows))
        .select(SCHEMA.names)
    )


def by_buckets(rows: pa.Table) -> Iterator[pa.Table]:
    """The row groups of a file: each of as many neighbouring buckets, and of not too few rows."""
    count = BUCKETS
    while count > 1 and rows.num_rows // count < GROUP_ROWS_MIN:
        count //= 2
    firsts = np.arange(0, BUCKETS, BUCKETS // count)
    starts = [*np.searchsorted(rows["bucket"].to_numpy(), firsts).tolist(), rows.num_rows]
    for start, end in itertools.pairwise(starts):
        if end > start:
            yield rows.slice(start, end - start)


def last_of(events: pa.Table) -> Last:
    """The event with the greatest cursor, in the order of the log."""
    # A cursor is one number, or several with colons between: the log's order is that of the numbers.
    parts = pc.split_pattern(events["cursor"].combine_chunks(), ":")
    count = int(pc.list_value_length(parts)[0].as_py())
    numbers = [pc.list_element(parts, place).cast(pa.int64()).to_numpy() for place in range(count)]
    place = int(np.lexsort(numbers[::-1])[-1])
    return Last(
        events["cursor"][place].as_py(),
        events["job_id"][place].as_py(),
        events["version"][place].as_py(),
        events["at"].cast(pa.int64())[place].as_py(),
    )


def _unknown(
    events: pa.Table, lake: Storage, held: tuple[Held, ...], seen: npt.NDArray[np.int64]
) -> pa.Table:
    """Each event once, and none that bronze holds. Only files whose seqs overlap are looked into."""
    seqs = events["seq"].to_numpy()
    low, high = int(seqs.min()), int(seqs.max())
    paths = [one.path for one in held if one.low_seq <= high and one.high_seq >= low]
    _, first = np.unique(seqs, return_index=True)
    if not paths and not len(seen) and len(first) == len(seqs):
        return events
    known = read_files(
        lake.within(EVENTS_TABLE.name),
        SCHEMA,
        ["on"],
        paths,
        columns=["seq"],
        where=pc.field("seq") >= low,
    )["seq"].to_numpy()
    fresh = np.zeros(len(seqs), np.bool_)
    fresh[first] = True
    fresh &= ~np.isin(seqs, known) & ~np.isin(seqs, seen)
    return events.filter(pa.array(fresh))
