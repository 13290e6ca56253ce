"""Rows as only Spark can send them: no Unicode, times beyond Python's, strings of another kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.spark.writing import jobs_of, payloads, write

NO_TEXT = pa.array([b"a\xff", b"b"], pa.binary()).view(pa.string())
BESIDE_A_QUOTE = pa.array([b"a\xff", b'b"'], pa.binary()).view(pa.string())
FAR = pa.array([400_000_000_000_000_000, 0], pa.int64()).view(pa.timestamp("us", tz="UTC"))
LARGE = pa.large_string()


def in_lists(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), values)


def in_structs(values: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([values], names=["x"])


@pytest.mark.parametrize("atomic", ["true", "false"])
@pytest.mark.parametrize(
    "columns",
    [
        {"payload": in_structs(NO_TEXT)},
        {"payload": in_structs(in_lists(BESIDE_A_QUOTE))},
        {"type": NO_TEXT},
        {"key": BESIDE_A_QUOTE},
        {"tags": in_lists(NO_TEXT)},
        {"payload": in_structs(FAR)},
        {"run_at": FAR},
    ],
    ids=["payload", "deep", "type", "key", "tags", "time", "run_at"],
)
def test_a_value_that_python_has_no_word_for_is_a_bad_row(
    durable_url: str, tmp_path: Path, columns: dict[str, pa.Array], atomic: str
) -> None:
    # One batch: the good row must not suffer from the bad one beside it.
    rows = pa.concat_batches([pa.record_batch({**payloads(2).to_pydict(), **columns})] * 2)
    path = str(tmp_path / "rejects")
    write(durable_url, rows, bad_rows="reject", rejects=path, atomic=atomic)
    kept = DeltaTable(path).to_pyarrow_table().sort_by("row").to_pylist()
    assert [row["row"] for row in kept] == [0, 2]
    found = jobs_of(durable_url)
    assert len(found) == (1 if "key" in columns else 2)
    assert all(job.payload is not None for job in found)  # and can be read


def test_large_strings_are_strings(durable_url: str) -> None:
    """As with `spark.sql.execution.arrow.useLargeVarTypes`."""
    texts = pa.array(['{"a": 1}', '{"a": 2}'], LARGE)
    deep: Any = pa.struct([("m", pa.map_(LARGE, pa.list_(LARGE)))])
    write(durable_url, pa.record_batch({"payload": texts, "type": pa.array(["x", "y"], LARGE)}))
    structs = pa.array([{"m": [("k", ["v"])]}], deep)
    tags = pa.array([["t"]], pa.list_(LARGE))
    write(durable_url, pa.record_batch({"payload": structs, "tags": tags}), write_id="v")
    assert [(job.type, job.payload, job.tags) for job in jobs_of(durable_url)] == [
        ("x", {"a": 1}, ()),
        ("y", {"a": 2}, ()),
        ("t", {"m": {"k": ["v"]}}, ("t",)),
    ]
