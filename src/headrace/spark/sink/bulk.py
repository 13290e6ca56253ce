"""The fast way into PostgreSQL: rows are checked column by column and loaded by COPY.

The rules are the manager's: it drafts one job for each group of rows, and what differs from row to row (key,
due time, size of the payload) is checked by the same functions, or by conditions under which they surely
pass. Rows that need more than that go through the manager one by one.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace import codec, validation
from headrace.errors import HeadraceError, StoreError
from headrace.manager import JobManager
from headrace.manager.admission import ADMISSION
from headrace.manager.placement import Draft, KeyRule
from headrace.spark.sink.failures import RowsChanged
from headrace.spark.sink.groups import Flags, Numbers, draft_of, groups_of, key_of
from headrace.spark.sink.message import GroupKey, TaskDone
from headrace.spark.sink.opening import patiently
from headrace.spark.sink.payloads import texts_or_null
from headrace.spark.sink.rows import Batch
from headrace.spark.sink.staging import staged_specs
from headrace.spark.sink.submitting import Submitter, submit_rows
from headrace.stores.postgres import PostgresStore
from headrace.stores.postgres.bulk import (
    ROWS,
    STAGED,
    Loaded,
    Loader,
    OtherContents,
    StagedLoad,
    StagedPart,
)
from headrace.stores.postgres.grouping import Group

if TYPE_CHECKING:
    from headrace.spark.sink.options import SinkOptions

CHUNK_ROWS = 50_000
CHUNK_BYTES_MAX = 32 << 20
"""A task holds two chunks: one that is loaded, one that is read. Large payloads make them short."""
_BY_MANAGER = -1
_BAD = -2
_SURELY_A_KEY = rf"^[!-~][ -~]{{0,{validation.KEY_CHARS_MAX - 1}}}$"


class Chunk:
    """Rows that are loaded in one step, and their groups."""

    def __init__(self, now: datetime, limited: frozenset[str]) -> None:
        self.now = now
        """When its jobs are drafted. They are born when they are stored."""
        self.limited = limited
        """Queues that count what is submitted to them."""
        self.groups: list[Group] = []
        self.numbers: dict[GroupKey, int] = {}
        self.batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.bytes = 0

    def add(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            self.batches.append(rows)
            self.rows += rows.num_rows
            self.bytes += rows.nbytes

    def is_full(self, rows_max: int) -> bool:
        return self.rows >= rows_max or self.bytes >= CHUNK_BYTES_MAX


class BulkSubmitter:
    """Loads the rows of one partition. `others` takes those that cannot be loaded.

    One chunk is loaded in a thread while the next is read and checked: the server's work and ours overlap.
    """

    def __init__(self, others: Submitter, store: PostgresStore, loader: Loader) -> None:
        self.manager = others.manager
        self.options = others.options
        self.reader = others.reader
        self.done = others.done
        self._others = others
        self._store = store
        self.loader = loader
        self._chunk: Chunk | None = None
        self._thread = ThreadPoolExecutor(1, "headrace-load")
        self._runner = asyncio.Runner()
        self._loading: tuple[Chunk, Future[Loaded]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Waits for what is being loaded: its connection must not be closed meanwhile."""
        try:
            self._thread.submit(self._close).result()
        finally:
            self._thread.shutdown()

    def _close(self) -> None:
        with self._runner:
            self.loader.close()

    async def submit(self, record: pa.RecordBatch) -> None:
        batch = self.reader.read(record)
        chunk = self._chunk
        if chunk is None:
            chunk = self._chunk = await self._new_chunk()
        codes, samples = groups_of(batch)
        numbers = await self._numbered(batch, codes, samples, chunk)
        self._check_keys(batch)
        waits = _waits(batch)
        await self._by_manager(batch, (numbers == _BY_MANAGER) & ~waits)
        fit = (numbers >= 0) & ~waits
        fit[list(batch.problems)] = False
        if not self._others.is_failing(batch):
            chunk.add(self._loadable(batch, numbers, fit, chunk))
        if waits.any():
            if not self._others.is_failing(batch):
                await self._flush()
                await self._settle()  # a row may wait for one that stands before it
            await self._by_manager(batch, waits)
        self._others.note(batch)
        if chunk.is_full(self.options.batch_size or CHUNK_ROWS):
            await self._flush()

    async def finish(self) -> None:
        await self._flush()
        await self._settle()
        await self._others.finish()

    async def _by_manager(self, batch: Batch, chosen: Flags) -> None:
        await self._others.submit_each(batch, batch.rows(np.flatnonzero(chosen).tolist()))

    async def _new_chunk(self) -> Chunk:
        limited = await self._store.records(ADMISSION)
        return Chunk(self.manager.clock.now(), frozenset(record.name for record in limited))

    async def _numbered(
        self, batch: Batch, codes: Numbers, samples: Sequence[int], chunk: Chunk
    ) -> Numbers:
        """For each row its group's number in the chunk, or why it has none."""
        numbers: Numbers = np.full(len(samples), _BY_MANAGER, np.int64)
        limits: Numbers = np.zeros(len(samples), np.int64)
        for code, place in enumerate(samples):
            try:
                draft = self.manager.draft(batch.sample(place), chunk.now)
            except HeadraceError as error:
                numbers[code] = _BAD
                for bad in np.flatnonzero(codes == code).tolist():
                    batch.problems.setdefault(bad, error)
                continue
            policy = self.manager.policies.of(draft.job.queue)
            limits[code] = policy.payload_bytes_max
            sealed = self.manager.keys is not None and policy.encrypted
            if not sealed and draft.job.queue not in chunk.limited:
                numbers[code] = await self._group(draft, chunk)
        self._check_sizes(batch, limits[codes])
        return numbers[codes]

    async def _group(self, draft: Draft, chunk: Chunk) -> int:
        key = key_of(draft)
        number = chunk.numbers.get(key)
        if number is None:
            number = chunk.numbers[key] = len(chunk.groups)
            (lane,) = await self._store.lanes_of([draft.job])
            chunk.groups.append(_group(draft, lane, self.options))
        return number

    def _check_sizes(self, batch: Batch, limits: Numbers) -> None:
        sizes = pc.binary_length(batch.texts).to_numpy()
        for place in np.flatnonzero(sizes > limits).tolist():
            try:
                codec.check_size(batch.texts[place].as_py().encode(), "payload", limits[place])
            except HeadraceError as error:
                batch.problems.setdefault(place, error)

    def _check_keys(self, batch: Batch) -> None:
        keys = batch.columns.get("key")
        if keys is None or pa.types.is_null(keys.type):
            return
        doubtful = pc.invert(pc.match_substring_regex(keys, _SURELY_A_KEY)).fill_null(False)  # noqa: FBT003 - Arrow's signature
        for place in pc.indices_nonzero(doubtful).to_pylist():
            try:
                validation.check_key(batch.value("key", place))
            except HeadraceError as error:
                batch.problems.setdefault(place, error)

    def _loadable(self, batch: Batch, numbers: Numbers, fit: Flags, chunk: Chunk) -> pa.RecordBatch:
        """The rows that fit, with the columns of ROWS."""
        count = len(batch)
        keys = batch.columns.get("key", pa.nulls(count)).cast(pa.string())
        if not fit.all():
            keys = pc.if_else(pa.array(fit), keys, None)  # a bad one may be no text at all
        rows = pa.record_batch(
            [
                pa.array(numbers, pa.int32()),
                self._ids(batch, keys, numbers, fit, chunk),
                keys,
                texts_or_null(keys).cast(pa.binary()),
                batch.columns.get("run_at", pa.nulls(count)).cast(ROWS.field("run_at").type),
                batch.texts.cast(pa.binary()),
            ],
            schema=ROWS,
        )
        return rows if fit.all() else rows.filter(pa.array(fit))

    def _ids(
        self,
        batch: Batch,
        keys: pa.Array,
        numbers: Numbers,
        fit: Flags,
        chunk: Chunk,
    ) -> pa.Array:
        naming = self.reader.naming
        ids = naming.by_rows(batch.numbers)
        if keys.null_count == len(keys):
            return ids
        named = ids.to_pylist()
        for place in np.flatnonzero(keys.is_valid().to_numpy(zero_copy_only=False) & fit).tolist():
            job = chunk.groups[numbers[place]].job
            named[place] = naming.by_key(job.tenant, job.queue, job.type, keys[place].as_py())
        return pa.array(named, pa.string())

    async def _flush(self) -> None:
        chunk, self._chunk = self._chunk, None
        await self._settle()
        if chunk is not None and chunk.rows and not self._others.is_failing():
            self._loading = (chunk, self._thread.submit(self._runner.run, self._load(chunk)))

    async def _settle(self) -> None:
        """Wait for the chunk that is being loaded, and count it."""
        if self._loading is not None:
            (chunk, future), self._loading = self._loading, None
            try:
                self._loaded(chunk, await asyncio.wrap_future(future))
            except OtherContents as error:
                raise RowsChanged.at(error.job_id) from error

    async def _load(self, chunk: Chunk) -> Loaded:
        return await patiently(
            lambda: self.loader.load(chunk.batches, chunk.groups, self.manager.clock.now())
        )

    def _loaded(self, chunk: Chunk, loaded: Loaded) -> None:  # noqa: ARG002 - BulkStager needs the one, we the other
        self._others.count(loaded.created, loaded.repeated)


class BulkStager(BulkSubmitter):
    """Stages the rows of one partition for the driver."""

    def __init__(self, others: Submitter, store: PostgresStore, loader: Loader) -> None:
        super().__init__(others, store, loader)
        self.done.attempt = secrets.randbits(62)
        self._next = 0

    async def _load(self, chunk: Chunk) -> Loaded:
        first = len(self.done.staged_groups)
        staged = [self._staged(rows, first) for rows in chunk.batches]
        name = staged_name(self.done.write_id)
        await patiently(lambda: self.loader.stage(name, staged, chunk.now))
        return Loaded(0, 0)  # nothing yet: the driver stores them

    def _loaded(self, chunk: Chunk, loaded: Loaded) -> None:  # noqa: ARG002 - as above
        self.done.staged_groups += chunk.numbers
        self.done.staged_rows += chunk.rows

    def _staged(self, rows: pa.RecordBatch, first_group: int) -> pa.RecordBatch:
        count = rows.num_rows
        numbers = np.arange(self._next, self._next + count)
        self._next += count
        return pa.record_batch(
            [
                pa.array(np.full(count, self.done.partition), pa.int32()),
                pa.array(np.full(count, self.done.attempt), pa.int64()),
                pa.array(numbers, pa.int64()),
                pc.add(rows.column(0), pa.scalar(first_group, pa.int32())),
                *rows.columns[1:],
            ],
            schema=STAGED,
        )


def staged_name(write_id: str) -> str:
    return blake2b(write_id.encode(), digest_size=8).hexdigest()


async def load_staged(
    manager: JobManager, options: SinkOptions, tenant: str | None, parts: Sequence[TaskDone]
) -> None:
    """Store all that the tasks have staged or sent in one transaction."""
    store = manager.store
    assert isinstance(store, PostgresStore)
    load = StagedLoad(options.url, staged_name(parts[0].write_id))
    others = staged_specs(options, tenant, parts)
    in_bulk = [part for part in parts if part.staged_rows]

    async def attempt() -> None:
        now = manager.clock.now()
        staged = [await _staged_part(manager, store, options, part, now) for part in in_bulk]
        async with load.transaction() as connection:
            if staged:
                await load.load(connection, staged, now)
            if others:
                await submit_rows(manager.on(connection), others)

    try:
        # What is staged stays until all is stored, so that an attempt whose end is not known can be repeated.
        await patiently(attempt)
    except OtherContents as error:
        raise RowsChanged.at(error.job_id) from error
    # All is stored: what cannot be dropped now is swept later.
    with contextlib.suppress(StoreError):
        await forget_staged(manager, options, parts[0].write_id)


async def forget_staged(manager: JobManager, options: SinkOptions, write_id: str) -> None:
    load = StagedLoad(options.url, staged_name(write_id))
    async with load.transaction() as connection:
        await load.forget(connection, manager.clock.now())


async def _staged_part(
    manager: JobManager, store: PostgresStore, options: SinkOptions, part: TaskDone, now: datetime
) -> StagedPart:
    drafts = [draft_of(manager, key, now) for key in part.staged_groups]
    lanes = await store.lanes_of([draft.job for draft in drafts])
    groups = [_group(draft, lane, options) for draft, lane in zip(drafts, lanes, strict=True)]
    return StagedPart(part.partition, part.attempt, part.staged_rows, groups)


def _group(draft: Draft, lane: int, options: SinkOptions) -> Group:
    """The job that stands for the group has no key: how long theirs hold is said here."""
    rule = draft.key_rule
    if options.key_hold is not None:
        rule = KeyRule(options.key_hold, released_when_terminal=False)
    return Group(draft.job, lane, rule.window_seconds, rule.released_when_terminal)


def _waits(batch: Batch) -> Flags:
    """Which rows wait for other jobs."""
    after = batch.columns.get("after", pa.nulls(len(batch)))
    flags: Flags = after.is_valid().to_numpy(zero_copy_only=False)
    return flags
