"""What is sent to COPY comes out as what it was, whatever its type and wherever it is missing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import asyncpg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.stores.postgres import arrow_rows, copying
from headrace.stores.postgres.arrow_rows import Common, Rows
from tests.stores.postgres.server import Schemas

TIME = pa.timestamp("us", tz="UTC")
MOMENT = datetime(2026, 11, 18, 3, 4, 5, 678901, tzinfo=UTC)
EARLY = datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
TABLE = """
    CREATE TEMPORARY TABLE sent (
        i4 integer, i8 bigint, at timestamptz, t text, b bytea,
        n integer, f float, is_so boolean, texts text[]
    )
"""


async def sent(schemas: Schemas, batches: list[Rows]) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(schemas.url)
    try:
        await connection.execute(TABLE)
        await arrow_rows.copy_batches(connection, "sent", batches)
        return [tuple(row) for row in await connection.fetch("SELECT * FROM sent")]
    finally:
        await connection.close()


@pytest.mark.parametrize("cut", [slice(0, 4), slice(1, 3), slice(3, 4), slice(2, 2)])
async def test_every_kind_of_column_arrives_whole_or_in_slices(
    postgres_schemas: Schemas, cut: slice
) -> None:
    values: dict[str, tuple[pa.DataType, list[Any]]] = {
        "i4": (pa.int32(), [0, None, -1, 2**31 - 1]),
        "i8": (pa.int64(), [None, -(2**63), 2**63 - 1, 0]),
        "at": (TIME, [MOMENT, EARLY, None, MOMENT]),
        "t": (pa.string(), ["", None, "é\n\\", "x" * 300_000]),
        "b": (pa.binary(), [b"\0\xff", b"", None, b"x" * 300_000]),
    }
    batch = pa.record_batch({name: pa.array(own, type_) for name, (type_, own) in values.items()})
    part = batch.slice(cut.start, cut.stop - cut.start)
    columns = {name: arrow_rows.own(part.column(name)) for name in part.schema.names}
    rows = await sent(postgres_schemas, [Rows(columns)])
    wanted = list(zip(*(own for _, own in values.values()), strict=True))[cut]
    assert [row[:5] for row in rows] == wanted
    assert [row[5:] for row in rows] == [(None,) * 4] * len(wanted)


async def test_each_row_has_the_values_of_its_group(postgres_schemas: Schemas) -> None:
    groups = pa.array([1, 0, 1], pa.int32())
    rows = Rows(
        {
            "n": Common([copying.int4(7), copying.int4(None)]),
            "f": Common([copying.float8(None), copying.float8(0.1)]),
            "t": arrow_rows.own(pa.array(["a", None, "c"])),
            "is_so": Common([copying.boolean(True), copying.boolean(False)]),
            "texts": Common([copying.NO_TEXTS] * 2),
            "at": Common([copying.timestamptz(MOMENT), copying.timestamptz(None)]),
            "i8": Common([copying.int8(-5), copying.int8(None)]),
            "b": Common([copying.bytea(b"\0"), copying.text("é")]),
        },
        groups,
    )
    assert await sent(postgres_schemas, [rows, rows]) == 2 * [
        (None, None, None, "a", "é".encode(), None, 0.1, False, []),
        (None, -5, MOMENT, None, b"\0", 7, None, True, []),
        (None, None, None, "c", "é".encode(), None, 0.1, False, []),
    ]


async def test_nothing_is_sent_of_no_batches(postgres_schemas: Schemas) -> None:
    assert await sent(postgres_schemas, []) == []


@given(st.lists(st.one_of(st.none(), st.text(max_size=5)), min_size=1, max_size=20), st.data())
def test_rows_are_as_long_as_what_they_hold(texts: list[str | None], data: st.DataObject) -> None:
    column = pa.array(texts, pa.string())
    start = data.draw(st.integers(0, len(texts) - 1))
    encoded = arrow_rows.encode(Rows({"t": arrow_rows.own(column.slice(start))}))
    held = sum(len((text or "").encode()) for text in texts[start:])
    assert len(encoded) == 6 * (len(texts) - start) + held
