"""Names for jobs that a row determines, so that the same row written again is the same job."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

_KEY_DIGEST_BYTES = 16
_ROW_DIGITS = 9


def new_write_id() -> str:
    """A name for a write that was given none. Later writes sort after earlier ones."""
    return f"df-{datetime.now(UTC):%Y%m%d%H%M%S}-{secrets.token_hex(4)}"


class Naming(msgspec.Struct, frozen=True):
    """The ids of the jobs of one partition. They begin alike and rise with the rows, as an index likes."""

    write_id: str
    partition: int

    @property
    def prefix(self) -> str:
        return f"{self.write_id}-{self.partition:05d}-"

    def by_row(self, row: int) -> str:
        """Row and partition are numbers that Spark gives: the same when a task is repeated."""
        return f"{self.prefix}{row:0{_ROW_DIGITS}d}"

    def by_rows(self, rows: Sequence[int]) -> pa.Array:
        """As `by_row`, for many at once."""
        numbers = pc.utf8_lpad(pa.array(rows, pa.int64()).cast(pa.string()), _ROW_DIGITS, "0")
        return pc.binary_join_element_wise(self.prefix, numbers, "")

    def by_key(self, tenant: str, queue: str, type: str, key: str) -> str:
        """Wherever the row stands: a key says itself which row it is."""
        digest = blake2b(digest_size=_KEY_DIGEST_BYTES)
        for part in (tenant, queue, type, key):
            encoded = part.encode()
            digest.update(len(encoded).to_bytes(4, "big") + encoded)
        return f"{self.write_id}-k{digest.hexdigest()}"
