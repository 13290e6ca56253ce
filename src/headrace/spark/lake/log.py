"""The store's log, as tasks read it: planned in one, read in many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from headrace.errors import InvalidCursor
from headrace.spark.lake.tasks import Tasks
from headrace.spark.schemas import EVENTS
from headrace.spark.source.batch import started
from headrace.spark.source.extract.base import Pieces, Slice
from headrace.spark.source.extract.choice import extract_of
from headrace.spark.source.options import RETRY_SECONDS, SourceOptions
from headrace.spark.source.patience import patiently

BATCH_EVENTS = 1_000_000
"""Events that one batch takes in: one commit per table. Tasks hold parts of it, the driver none."""
SLICE_EVENTS = 125_000
BATCHES_AT_ONCE = 64
"""So many batches are planned ahead."""


class Planned(NamedTuple):
    """What is to be read, batch by batch, each in slices."""

    batches: tuple[tuple[Slice, ...], ...]
    end: str
    """The cursor that the last of them ends with."""
    log_end: str
    """Where the log ended then."""


class Log:
    """The log of one store. Only tasks open the store by it.

    A SQLite file that two libraries open in one process loses its locks.
    """

    def __init__(self, url: str, tasks: Tasks) -> None:
        self._url = url
        self._tasks = tasks

    def plan(self, after: str, batch_events: int) -> Planned:
        """What may be read behind this cursor; "" is the beginning. Raises InvalidCursor."""
        asked = partial(_plan, self._url, batch_events, self._tasks.parallelism)
        (planned,) = self._tasks.run(asked, [after])
        return planned

    @property
    def read(self) -> partial[Iterator[pa.RecordBatch]]:
        """For tasks: the events of a slice."""
        return partial(_read, self._url)

    @property
    def further(self) -> partial[str]:
        """Which of two cursors lies further along the log."""
        return partial(_further, self._url)


def _options(url: str) -> SourceOptions:
    return SourceOptions.parse({"url": url, "table": "events"})


def _plan(url: str, batch_events: int, parallelism: int, after: str) -> Planned:
    extract = extract_of(_options(url))

    def planned() -> Planned:
        end = extract.log_end(settled=True)
        begin = after or extract.log_start()
        if extract.place(end) < extract.place(after):
            raise InvalidCursor(
                f"the log ends at {end or 'its beginning'}, before the cursor {after} from which the lake "
                "goes on; nothing was read: an older state of the store was restored"
            )
        batches: list[tuple[Slice, ...]] = []
        while extract.place(begin) < extract.place(end) and len(batches) < BATCHES_AT_ONCE:
            upto = extract.further(begin, batch_events, end)
            each = max(min(SLICE_EVENTS, -(-batch_events // max(parallelism, 1))), 1)
            slices = extract.cut_log(begin, upto, Pieces(None, each))
            batches.append(tuple(replace(piece, unbroken=True) for piece in slices))
            begin = upto
        return Planned(tuple(batches), begin, end)

    return patiently(planned, RETRY_SECONDS)


def _read(url: str, piece: Slice) -> Iterator[pa.RecordBatch]:
    return started(extract_of(_options(url)), "events", piece, EVENTS, RETRY_SECONDS)


def _further(url: str, one: str, other: str) -> str:
    place = extract_of(_options(url)).place
    return other if place(other) >= place(one) else one
