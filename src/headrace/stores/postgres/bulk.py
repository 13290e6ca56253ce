"""Bulk loading: rows of Arrow become jobs by COPY, several times faster than one by one.

What the jobs are is decided before: the manager has drafted one job for each group of rows that differ only
in id, key, due time and payload. Here its columns are spread over the rows. Needs PyArrow (extra `spark`).
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any, NamedTuple

import asyncpg
import pyarrow as pa

from headrace.errors import HeadraceError, StoreError
from headrace.stores.postgres import grouping, opening
from headrace.stores.postgres.arrow_rows import NewRows, Rows, copy_batches, own
from headrace.stores.postgres.columns import LOADED
from headrace.stores.postgres.connection import Connection
from headrace.stores.postgres.copying import SEQ_BYTES
from headrace.stores.postgres.errors import sqlstate, translate
from headrace.stores.postgres.grouping import Group
from headrace.stores.postgres.sql import SCHEMA_DEFAULT, Sql
from headrace.stores.postgres.wait import channel

TIME = pa.timestamp("us", tz="UTC")
STAGED_PREFIX = "load_staged_"
STAGED_AGE_MAX = timedelta(days=7)
"""A write that has not ended by then never will."""
DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
OTHER_CONTENTS = "HR002"
"""Raised by load_forget_stored: the id of a row is that of a job with other contents."""

ROWS = pa.schema(
    [
        pa.field("group_number", pa.int32()),
        pa.field("id", pa.string()),
        pa.field("key", pa.string()),
        pa.field("key_json", pa.binary()),
        pa.field("run_at", TIME),
        pa.field("payload", pa.binary()),
    ]
)
"""One row per job. `key_json` is the key as JSON; NULL for `run_at`: at once."""

STAGED = pa.schema(
    [
        pa.field("part", pa.int32()),
        pa.field("attempt", pa.int64()),
        pa.field("row_number", pa.int64()),
        *ROWS,
    ]
)
"""The same, with the part of the load, which attempt at it, and the row's place in it."""


class Loaded(NamedTuple):
    created: int
    repeated: int
    """Stored already, or their key was held."""


class StagedPart(NamedTuple):
    """The rows that one attempt at one part of a load has staged."""

    part: int
    attempt: int
    rows: int
    groups: Sequence[Group]


class OtherContents(HeadraceError):
    """A row has the id of a stored job that is not made of it. Nothing of the load was stored."""

    code = "OTHER_CONTENTS"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id} is stored with other contents; nothing was stored")
        self.job_id = job_id


class Loader:
    """One connection for loading. Each call is a transaction of its own, stored whole or not at all.

    Bound to the event loop that it is first used on.
    """

    def __init__(self, url: str) -> None:
        to = opening.parse(url, schema=SCHEMA_DEFAULT, pool_size=1)
        self._where = to.where
        self._to = to
        self._sql = Sql(to.schema)
        self._connection: Connection | None = None

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def load(
        self, rows: Sequence[pa.RecordBatch], groups: Sequence[Group], now: datetime
    ) -> Loaded:
        """Store a job for every row (columns ROWS) that is not stored yet. Raises OtherContents.

        Rows without keys and tags are copied straight into the tables, as if all were new, which they mostly
        are. Where that clashes it is undone, and done again with a look at what is stored.
        """
        async with self._transaction() as connection:
            loaded = None
            if not _any_tags(groups) and not any(_any_keys(batch) for batch in rows):
                loaded = await self._load_straight(connection, rows, groups, now)
            if loaded is None:
                loaded = await self._load_carefully(connection, rows, groups, now)
        await self._notify()
        return loaded

    async def _load_straight(
        self,
        connection: Connection,
        rows: Sequence[pa.RecordBatch],
        groups: Sequence[Group],
        now: datetime,
    ) -> Loaded | None:
        """None: some of them are stored already, and nothing was done."""
        count = sum(batch.num_rows for batch in rows)
        try:
            async with connection.transaction():
                seqs, _ = await connection.fetchrow(self._sql.query("load_seqs"), count)
                new = _new_rows(rows, groups, now, seqs)
                schema = self._sql.schema
                for table in LOADED:
                    await copy_batches(connection, table, [one.of(table) for one in new], schema)
        except asyncpg.UniqueViolationError:
            return None
        return Loaded(count, 0)

    async def _load_carefully(
        self,
        connection: Connection,
        rows: Sequence[pa.RecordBatch],
        groups: Sequence[Group],
        now: datetime,
    ) -> Loaded:
        await connection.fetch(self._sql.query("load_begin"))
        await copy_batches(connection, "load_rows", [_as_they_are(batch) for batch in rows])
        return await _load_jobs(connection, self._sql, groups, now)

    async def stage(self, name: str, rows: Sequence[pa.RecordBatch], now: datetime) -> None:
        """Keep rows (columns STAGED) under this name for a `StagedLoad`."""
        table = STAGED_PREFIX + name
        async with self._transaction() as connection:
            await connection.fetch(self._sql.query("load_stage"), table, now.isoformat())
            staged = [_as_they_are(batch) for batch in rows]
            await copy_batches(connection, table, staged, self._sql.schema)

    async def _notify(self) -> None:
        """After the commit, and on its own: see hints. A hint that is lost costs one poll."""
        with contextlib.suppress(HeadraceError):
            async with self._transaction() as connection:
                await connection.fetch(self._sql.query("notify"), channel(self._sql.schema), "")

    @contextlib.asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        try:
            if self._connection is None:
                self._connection = await opening.connect(self._to)
            async with self._connection.transaction():
                yield self._connection
        except DRIVER_ERRORS as error:
            self.close()  # rolls back, and a connection that broke is of no more use
            raise _translated(error, self._where) from error
        except BaseException:
            self.close()
            raise


class StagedLoad:
    """What was staged under one name, and the transaction that makes jobs of it, or forgets it."""

    def __init__(self, url: str, name: str) -> None:
        to = opening.parse(url, schema=SCHEMA_DEFAULT, pool_size=1)
        self._where = to.where
        self._to = to
        self._sql = Sql(to.schema)
        self._table = STAGED_PREFIX + name

    @contextlib.asynccontextmanager
    async def transaction(self) -> Any:
        """A connection in a transaction that commits at the end of the block."""
        try:
            connection = await opening.connect(self._to)
            try:
                async with connection.transaction():
                    yield connection
                with contextlib.suppress(Exception):  # a hint
                    await connection.fetch(self._sql.query("notify"), channel(self._sql.schema), "")
            finally:
                connection.terminate()
        except DRIVER_ERRORS as error:
            raise _translated(error, self._where) from error

    async def load(
        self, connection: Connection, parts: Sequence[StagedPart], now: datetime
    ) -> Loaded:
        """Store a job for every row of these parts that is not stored yet: may be repeated.

        Raises StoreError if some rows are gone: staged rows do not survive a crash of the server.
        """
        sizes = [len(part.groups) for part in parts]
        groups = [group for part in parts for group in part.groups]
        wanted = sum(part.rows for part in parts)
        await connection.fetch(self._sql.query("load_begin"))
        taken = await connection.fetchval(
            self._sql.query("load_staged"),
            self._table,
            [part.part for part in parts],
            [part.attempt for part in parts],
            list(accumulate(sizes[:-1], initial=0)),
        )
        if taken != wanted:
            raise StoreError(
                f"{taken} of {wanted} staged rows are left at {self._where}, as after a crash of the server, "
                "or if another write has the same write_id; nothing was stored: write again"
            )
        return await _load_jobs(connection, self._sql, groups, now)

    async def forget(self, connection: Connection, now: datetime) -> None:
        """Drop what was staged, and what others have staged and forgotten.

        In a transaction of its own: whoever reads the table, as a backup does, is waited for.
        Raises StoreUnavailable if that takes more than moments.
        """
        await connection.fetch(
            self._sql.query("load_sweep"), self._table, STAGED_PREFIX, now - STAGED_AGE_MAX
        )


async def _load_jobs(
    connection: Connection, sql: Sql, groups: Sequence[Group], now: datetime
) -> Loaded:
    """Make jobs of what is in load_rows."""
    described = [grouping.row_of(number, group, now) for number, group in enumerate(groups)]
    await connection.copy_records_to_table(
        "load_groups",
        records=[tuple(row.values()) for row in described],
        columns=list(described[0]),
    )
    created, repeated = await connection.fetchrow(
        sql.query("load_jobs"), now.isoformat(), _any_tags(groups)
    )
    return Loaded(created, repeated)


def _new_rows(
    rows: Sequence[pa.RecordBatch], groups: Sequence[Group], now: datetime, seqs: bytes
) -> list[NewRows]:
    """Each batch takes its share of the seqs."""
    ends = list(accumulate(SEQ_BYTES * batch.num_rows for batch in rows))
    starts = [0, *ends]
    return [
        NewRows(batch, groups, now, seqs[start:end])
        for batch, start, end in zip(rows, starts, ends, strict=False)
    ]


def _as_they_are(batch: pa.RecordBatch) -> Rows:
    return Rows({name: own(batch.column(name)) for name in batch.schema.names})


def _any_tags(groups: Sequence[Group]) -> bool:
    return any(group.job.tags for group in groups)


def _any_keys(batch: pa.RecordBatch) -> bool:
    return bool(batch.column("key").null_count < batch.num_rows)


def _translated(error: Exception, where: str) -> HeadraceError:
    if sqlstate(error) == OTHER_CONTENTS:
        return OtherContents(str(error))
    return translate(error, where, writes=True)
