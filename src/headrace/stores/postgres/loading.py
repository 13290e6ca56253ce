"""Bulk loading: rows of Arrow become jobs by COPY and one function, several times faster than one by one.

What the jobs are is decided before: the manager has drafted one job for each group of rows that differ only
in id, key, due time and payload. Here its columns are spread over the rows. Needs the extra `spark` (ADBC and
PyArrow).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any, NamedTuple, Self

import asyncpg
import msgspec
import pyarrow as pa
from adbc_driver_manager.dbapi import Error as DriverError
from adbc_driver_postgresql import dbapi
from msgspec.structs import replace

from headrace import history
from headrace.errors import HeadraceError, StoreError, StoreUnavailable
from headrace.model import Job
from headrace.stores.postgres import address
from headrace.stores.postgres.failures import sqlstate, translate
from headrace.stores.postgres.insertion import us_or_none
from headrace.stores.postgres.pool import Connection
from headrace.stores.postgres.sql import SCHEMA_DEFAULT, Sql
from headrace.stores.postgres.store import CONNECT_SECONDS_MAX, SETTINGS

TIME = pa.timestamp("us", tz="UTC")
STAGED_PREFIX = "load_staged_"
STAGED_AGE_MAX = timedelta(days=7)
"""A write that has not ended by then never will."""
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

_GROUPS = pa.schema(
    [
        pa.field("group_number", pa.int32()),
        pa.field("lane", pa.int32()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("created_at", TIME),
        pa.field("max_attempts", pa.int32()),
        pa.field("lease_seconds", pa.float64()),
        pa.field("lease_us", pa.int64()),
        pa.field("timeout_seconds", pa.float64()),
        pa.field("expires_at", TIME),
        pa.field("detail", pa.binary()),
        pa.field("keyed_head", pa.binary()),
        pa.field("keyed_tail", pa.binary()),
        pa.field("key_expires_at", TIME),
        pa.field("key_released", pa.bool_()),
    ]
)
_SOME_KEY = "0c9e7f1a5d2b4a66"
_PRIMARY = b"PG_DIAG_MESSAGE_PRIMARY"


class Group(msgspec.Struct, frozen=True):
    """What rows have in common: a job that stands for all of them, its lane, and how long keys hold."""

    job: Job
    """Its times count from its birth, which is when the rows are stored."""
    lane: int
    key_seconds: float | None
    """None: without end."""
    key_released: bool

    def born(self, now: datetime) -> Job:
        lifetime = (
            None if self.job.expires_at is None else self.job.expires_at - self.job.created_at
        )
        return replace(
            self.job, created_at=now, expires_at=None if lifetime is None else now + lifetime
        )

    def key_expires_at(self, now: datetime) -> datetime | None:
        return None if self.key_seconds is None else now + timedelta(seconds=self.key_seconds)


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

    Calls block: they are for processes that do nothing else, as the tasks of a Spark job.
    """

    def __init__(self, url: str) -> None:
        to = address.parse(url, schema=SCHEMA_DEFAULT, pool_size=1)
        self._where = to.where
        self._dsn = to.dsn
        self._sql = Sql(to.schema)
        self._connection: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(DriverError):
                connection.close()

    def load(
        self, rows: Sequence[pa.RecordBatch], groups: Sequence[Group], now: datetime
    ) -> Loaded:
        """Store a job for every row (columns ROWS) that is not stored yet. Raises OtherContents."""
        with self._transaction() as cursor:
            self._ask(cursor, "load_begin")
            table = pa.Table.from_batches(rows, ROWS)
            cursor.adbc_ingest("load_rows", table, mode="append", temporary=True)
            own = pa.Table.from_pylist(_group_rows(groups, now), _GROUPS)
            cursor.adbc_ingest("load_groups", own, mode="append", temporary=True)
            ((created, repeated),) = self._ask(
                cursor, "load_jobs", now.isoformat(), _tagged(groups)
            )
        self._notify()
        return Loaded(created, repeated)

    def stage(self, name: str, rows: Sequence[pa.RecordBatch], now: datetime) -> None:
        """Keep rows (columns STAGED) under this name for a `StagedLoad`."""
        with self._transaction() as cursor:
            self._ask(cursor, "load_stage", STAGED_PREFIX + name, now.isoformat())
            cursor.adbc_ingest(
                STAGED_PREFIX + name,
                pa.Table.from_batches(rows, STAGED),
                mode="append",
                db_schema_name=self._sql.schema,
            )

    def _notify(self) -> None:
        """After the commit, and on its own: see hints. A hint that is lost costs one poll."""
        with contextlib.suppress(HeadraceError), self._transaction() as cursor:
            self._ask(cursor, "notify", f"headrace_{self._sql.schema}")

    def _ask(self, cursor: Any, name: str, *arguments: object) -> list[tuple[Any, ...]]:
        cursor.execute(self._sql.query(name), arguments or None)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Any]:
        try:
            if self._connection is None:
                self._connection = self._connect()
            with self._connection.cursor() as cursor:
                yield cursor
            self._connection.commit()
        except DriverError as error:
            self.close()  # rolls back, and a connection that broke is of no more use
            raise self._translated(error) from error
        except BaseException:
            self.close()
            raise

    def _connect(self) -> Any:
        connection = dbapi.connect(self._dsn)
        with connection.cursor() as cursor:
            for setting, value in SETTINGS.items():
                cursor.execute("SELECT set_config($1, $2, false)", (setting, value))
        connection.commit()
        return connection

    def _translated(self, error: DriverError) -> HeadraceError:
        code = sqlstate(error)
        if code is None or not code.strip("\0"):
            return StoreUnavailable(
                f"the connection to {self._where} failed ({error}); whether the rows were stored is not "
                "known: load them again"
            )
        return _translated(error, self._where)


class StagedLoad:
    """What was staged under one name, and the transaction that makes jobs of it, or forgets it."""

    def __init__(self, url: str, name: str) -> None:
        to = address.parse(url, schema=SCHEMA_DEFAULT, pool_size=1)
        self._where = to.where
        self._dsn = to.dsn
        self._sql = Sql(to.schema)
        self._table = STAGED_PREFIX + name

    @contextlib.asynccontextmanager
    async def transaction(self) -> Any:
        """A connection in a transaction that commits at the end of the block."""
        try:
            # No time limit: how long it takes depends on how many rows there are.
            connection = await asyncpg.connect(
                self._dsn, timeout=CONNECT_SECONDS_MAX, server_settings=SETTINGS
            )
            try:
                async with connection.transaction():
                    yield connection
                with contextlib.suppress(Exception):  # a hint
                    await connection.fetch(
                        self._sql.query("notify"), f"headrace_{self._sql.schema}"
                    )
            finally:
                connection.terminate()
        except HeadraceError:
            raise
        except Exception as error:
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
        await connection.copy_records_to_table(
            "load_groups",
            records=[tuple(row.values()) for row in _group_rows(groups, now)],
            columns=_GROUPS.names,
        )
        created, repeated = await connection.fetchrow(
            self._sql.query("load_jobs"), now.isoformat(), _tagged(groups)
        )
        return Loaded(created, repeated)

    async def forget(self, connection: Connection, now: datetime) -> None:
        """Drop what was staged, and what others have staged and forgotten.

        In a transaction of its own: whoever reads the table, as a backup does, is waited for.
        Raises StoreUnavailable if that takes more than moments.
        """
        await connection.fetch(
            self._sql.query("load_sweep"), self._table, STAGED_PREFIX, now - STAGED_AGE_MAX
        )


def _tagged(groups: Sequence[Group]) -> bool:
    return any(group.job.tags for group in groups)


def _group_rows(groups: Sequence[Group], now: datetime) -> list[dict[str, Any]]:
    """In the order of the columns."""
    rows = []
    for number, group in enumerate(groups):
        job = group.born(now)
        head, tail = _around_key(job)
        values = (
            number,
            group.lane,
            list(job.tags),
            job.created_at,
            job.max_attempts,
            job.lease_seconds,
            us_or_none(job.lease_seconds),
            job.timeout_seconds,
            job.expires_at,
            history.detail_of(replace(job, key=None), ()),
            head,
            tail,
            group.key_expires_at(now),
            group.key_released,
        )
        rows.append(dict(zip(_GROUPS.names, values, strict=True)))
    return rows


def _around_key(job: Job) -> tuple[bytes, bytes]:
    """The detail of an event of this job with a key: what stands before the key, and after it."""
    written = history.detail_of(replace(job, key=_SOME_KEY), ())
    head, _, tail = written.partition(f'"key":"{_SOME_KEY}"'.encode())
    return head + b'"key":', tail


def _translated(error: Exception, where: str) -> HeadraceError:
    if sqlstate(error) == OTHER_CONTENTS:
        return OtherContents(_said(error))
    return translate(error, where, writes=True)


def _said(error: Exception) -> str:
    """The server's own words, without what ADBC adds to them."""
    details: dict[Any, bytes] = dict(error.details) if isinstance(error, DriverError) else {}
    return details[_PRIMARY].decode() if _PRIMARY in details else str(error)
