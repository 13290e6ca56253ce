"""What the rows of a load are in each table, where nothing about them needs to be looked up.

What load_insert says in SQL, for rows without keys and tags: a test compares both with the manager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from headrace.model import EventKind, State
from headrace.stores.postgres.copying import (
    NO_TEXTS,
    Common,
    Own,
    Rows,
    boolean,
    bytea,
    float8,
    int4,
    int8,
    numbered,
    own,
    sent_numbers,
    text,
    timestamptz,
)
from headrace.stores.postgres.grouping import Group, detail_of
from headrace.stores.postgres.insert import us_or_none

SEQ_BYTES = 8


class NewRows:
    """A batch of a load (columns ROWS), its groups, and the seqs taken for it, as the server sent them."""

    def __init__(
        self, batch: pa.RecordBatch, groups: Sequence[Group], now: datetime, seqs: bytes
    ) -> None:
        self._group_numbers = batch.column("group_number")
        self._groups = groups
        self._born = [group.born(now) for group in groups]
        self._now = now
        self._seq = numbered(sent_numbers(seqs, SEQ_BYTES), SEQ_BYTES)
        self._id = own(batch.column("id"))
        due = batch.column("run_at")
        self._run_at = own(pc.fill_null(due, pa.scalar(now, due.type)))
        payload = batch.column("payload")
        self._payload = own(payload)
        self._payload_bytes = own(pc.binary_length(payload))

    def bodies(self) -> Rows:
        return self._rows(
            {
                "seq": self._seq,
                "id": self._id,
                "lane": self._lane(),
                "tags": self._all(NO_TEXTS),
                "created_at": self._all(timestamptz(self._now)),
                "depth": self._all(int4(0)),
                "lease_seconds": _each(float8(job.lease_seconds) for job in self._born),
                "timeout_seconds": _each(float8(job.timeout_seconds) for job in self._born),
                "payload": self._payload,
            }
        )

    def jobs(self) -> Rows:
        return self._rows(
            {
                "seq": self._seq,
                "run_at": self._run_at,
                "updated_at": self._all(timestamptz(self._now)),
                "lane": self._lane(),
                "version": self._all(int4(1)),
                "attempt": self._all(int4(0)),
                "failures": self._all(int4(0)),
                "losses": self._all(int4(0)),
                "max_attempts": _each(int4(job.max_attempts) for job in self._born),
                "early": self._all(boolean(True)),  # noqa: FBT003 - as load_jobs says
                "state": self._all(text(State.PENDING)),
                "lease_us": _each(int8(us_or_none(job.lease_seconds)) for job in self._born),
                "expires_at": _each(timestamptz(job.expires_at) for job in self._born),
            }
        )

    def events(self) -> Rows:
        return self._rows(
            {
                "job_seq": self._seq,
                "payload_bytes": self._payload_bytes,
                "job_id": self._id,
                "run_at": self._run_at,
                "at": self._all(timestamptz(self._now)),
                "lane": self._lane(),
                "version": self._all(int4(1)),
                "attempt": self._all(int4(0)),
                "failures": self._all(int4(0)),
                "losses": self._all(int4(0)),
                "kind": self._all(text(EventKind.ENQUEUED)),
                "after": self._all(text(State.PENDING)),
                "detail": _each(bytea(detail_of(job)) for job in self._born),
            }
        )

    def _rows(self, columns: Mapping[str, Common | Own]) -> Rows:
        return Rows(columns, self._group_numbers)

    def _lane(self) -> Common:
        return _each(int4(group.lane) for group in self._groups)

    def _all(self, value: bytes) -> Common:
        return Common([value] * len(self._groups))


def _each(values: Iterable[bytes]) -> Common:
    return Common(list(values))
