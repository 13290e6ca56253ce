"""Any store, through its own verbs: Redis, which has no way in for bulk readers.

What a seq or a cursor is, the store's verbs leave open; this takes cursors to be seqs without gaps, as on
Redis.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa

from headrace.connect import open_store
from headrace.errors import InvalidCursor
from headrace.model import Event, Job, State
from headrace.spark.schemas import EVENTS
from headrace.spark.source.extract.base import Pieces, Slice, Table
from headrace.spark.source.extract.ranges import (
    PROBE_ROWS,
    Probe,
    cut_by_probes,
    even_cuts,
    probe_starts,
)
from headrace.spark.source.extract.verbatim import events_batch, jobs_batch
from headrace.spark.source.options import Predicates
from headrace.stores.base import EventQuery, JobStore, Query

_PAGE_EVENTS = 20_000
_PAGE_JOBS = 5_000


class _Opened:
    """A store and the loop it lives in."""

    def __init__(self, store: JobStore, runner: asyncio.Runner) -> None:
        self._store = store
        self._runner = runner

    def events(self, after: str, limit: int, tenant: str | None = None) -> Sequence[Event]:
        query = EventQuery(after=after, limit=limit, tenant=tenant)
        return self._runner.run(self._store.events(query))

    def find(self, query: Query) -> Sequence[Job]:
        return self._runner.run(self._store.find(query))

    def tail(self) -> str:
        return self._runner.run(self._store.tail())


@dataclass(frozen=True)
class GenericExtract:
    url: str = field(repr=False)
    predicates: Predicates

    def place(self, cursor: str) -> int:
        return place(cursor)

    def log_end(self, *, settled: bool = False) -> str:  # noqa: ARG002 - writers take turns
        with self._opened() as store:
            return store.tail()

    def log_start(self) -> str:
        with self._opened() as store:
            first = store.events("", 1)
            return str(first[0].seq - 1 or "") if first else store.tail()

    def further(self, after: str, rows: int, upto: str) -> str:
        return str(min(place(after) + rows, place(upto)))

    def mark(self, cursor: str) -> str | None:
        with self._opened() as store:
            # By its job and not by the place before it, which may have been trimmed.
            start = store.events("", 1)
            if not start or start[0].seq > place(cursor):
                return None
            before = str(place(cursor) - 1 or "")
            found = start if start[0].seq == place(cursor) else store.events(before, 1)
            if not found or found[0].seq != place(cursor):
                return None
            event = found[0]
            return f"{event.job_id} {event.version} {event.at}"

    def cut_log(self, after: str, upto: str, pieces: Pieces) -> Sequence[Slice]:
        low, high = place(after), place(upto)
        cuts = even_cuts(low, high, pieces.count(high - low))
        return [Slice(str(start), str(end)) for start, end in cuts if end > start]

    def count_log(self, after: str, upto: str) -> tuple[int, int]:
        """By reading it: only the ends of the log are known without."""
        columns = pa.schema([EVENTS.field("seq")])
        everything = replace(self, predicates=Predicates())
        events = seqs = 0
        for batch in everything.rows("events", Slice(after, upto), columns):
            events += batch.num_rows
            seqs += sum(batch.column(0).to_pylist())
        return events, seqs

    def cut(self, table: Table, pieces: Pieces) -> Sequence[Slice]:
        """Histories in one slice: the log is not kept by job, so each would have to read all of it."""
        if table == "histories":
            log_end = self.log_end()
            return [Slice("", "", log_end)] if log_end else []
        if table == "events":
            return self.cut_log(self.log_start(), self.log_end(), pieces)
        with self._opened() as store:
            first = store.find(Query(limit=1))
            last = store.find(Query(limit=1, newest_first=True))
            if not first or not last:
                return []
            low, high = first[0].seq - 1, last[0].seq
            cuts = cut_by_probes(low, high, _probes(store, low, high), pieces)
            return [Slice(str(start), str(end)) for start, end in cuts]

    def rows(self, table: Table, piece: Slice, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        with self._opened() as store:
            if table == "jobs":
                yield from self._jobs(store, piece, columns)
            else:
                yield from self._events(store, table, piece, columns)

    def _events(
        self, store: _Opened, table: Table, piece: Slice, columns: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        wanted = self.predicates
        if table == "histories":
            wanted = replace(wanted, state=None, since=None, until=None)
        tenant = wanted.tenant[0] if wanted.tenant is not None and len(wanted.tenant) == 1 else None
        # "" would begin with whatever the log holds; "0" tells that something was trimmed.
        after = piece.after or "0" if piece.unbroken else _at_least(piece.after, store)
        end = place(piece.upto or piece.log_end)
        while place(after) < end:
            page = store.events(after, min(_PAGE_EVENTS, end - place(after)), tenant)
            if not page:
                return
            after = page[-1].cursor
            found = [event for event in page if event.seq <= end and _holds(wanted, event)]
            if found:
                yield events_batch(found, columns)

    def _jobs(self, store: _Opened, piece: Slice, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        wanted = self.predicates
        after, end = int(piece.after), int(piece.upto)
        one_tenant = wanted.tenant is not None and len(wanted.tenant) == 1
        while after < end:
            page = store.find(
                Query(
                    tenant=wanted.tenant[0] if one_tenant and wanted.tenant else None,
                    queues=wanted.queue,
                    types=wanted.type,
                    states=None if wanted.state is None else [State(one) for one in wanted.state],
                    created_from=wanted.since,
                    created_before=wanted.until,
                    after_seq=after,
                    limit=_PAGE_JOBS,
                )
            )
            if not page:
                return
            after = page[-1].seq
            found = [
                job
                for job in page
                if job.seq <= end and (wanted.tenant is None or job.tenant in wanted.tenant)
            ]
            if found:
                yield jobs_batch(found, columns)

    @contextmanager
    def _opened(self) -> Iterator[_Opened]:
        with asyncio.Runner() as runner:
            store = runner.run(open_store(self.url, create=False))
            try:
                yield _Opened(store, runner)
            finally:
                runner.run(store.close())


def place(cursor: str) -> int:
    if cursor and not (cursor.isascii() and cursor.isdigit()):
        raise InvalidCursor(f"{cursor!r} is not a cursor of this store's event log")
    return int(cursor or 0)


def _at_least(after: str, store: _Opened) -> str:
    first = store.events("", 1)
    return str(max(place(after), first[0].seq - 1) or "") if first else after


def _holds(wanted: Predicates, event: Event) -> bool:
    return (
        (wanted.tenant is None or event.tenant in wanted.tenant)
        and (wanted.queue is None or event.queue in wanted.queue)
        and (wanted.type is None or event.type in wanted.type)
        and (wanted.state is None or event.after in wanted.state)
        and (wanted.since is None or event.at >= wanted.since)
        and (wanted.until is None or event.at < wanted.until)
    )


def _probes(store: _Opened, after: int, upto: int) -> list[Probe]:
    probes = []
    for start in probe_starts(after, upto):
        found = store.find(Query(after_seq=start - 1, limit=PROBE_ROWS))
        if found:
            probes.append(Probe(start, found[-1].seq, len(found)))
    return probes
