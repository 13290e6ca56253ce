"""What an enqueued event says of its job besides its own columns: JSON text as columns."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from headrace.model import EventKind
from headrace.spark.schemas import TIME

DEPENDENCY = pa.struct([pa.field("job_id", pa.string()), pa.field("kind", pa.string())])

_BLOCK_BYTES = 1 << 24
_TEXTS = ("key", "previous_id", "parent_id", "correlation_id", "limit_key")
_WRITTEN = pa.schema(
    [
        pa.field("tags", pa.list_(pa.string())),
        pa.field("max_attempts", pa.int32()),
        pa.field("expires_at", pa.string()),
        pa.field("timeout_seconds", pa.float64()),
        *(pa.field(name, pa.string()) for name in _TEXTS),
        pa.field("dependencies", pa.list_(pa.list_(pa.string()))),
    ]
)


class Details(NamedTuple):
    """One column each, as long as the texts were. What a text does not name is null, lists are empty."""

    tags: pa.Array
    key: pa.Array
    previous_id: pa.Array
    parent_id: pa.Array
    correlation_id: pa.Array
    limit_key: pa.Array
    max_attempts: pa.Array
    expires_at: pa.Array
    timeout_seconds: pa.Array
    dependencies: pa.Array


def details_of(texts: pa.Array) -> Details:
    """The columns behind `detail`, as `headrace.history.detail_of` wrote it. A null text says nothing."""
    # Many jobs of one kind say the same: each text is read once.
    spoken = pc.fill_null(texts, "{}").dictionary_encode()
    read = _read(spoken.dictionary)
    columns = {name: read[name].combine_chunks().take(spoken.indices) for name in _WRITTEN.names}
    return Details(
        tags=_lists(columns["tags"]),
        **{name: columns[name] for name in _TEXTS},
        max_attempts=columns["max_attempts"],
        expires_at=columns["expires_at"].cast(TIME),
        timeout_seconds=columns["timeout_seconds"],
        dependencies=_dependencies(_lists(columns["dependencies"])),
    )


def updates_of(events: pa.Table) -> list[tuple[int, dict[str, Any]]]:
    """The places of updates among these events, in order, each with what `headrace.history.update_of` wrote.

    They are few: each is something that a person or a program asked for by the job's id.
    """
    updates = pc.fill_null(pc.equal(events["kind"], EventKind.UPDATED), fill_value=False)
    places = pc.indices_nonzero(updates)
    texts = events["detail"].take(places).to_pylist()
    return [
        (place, msgspec.json.decode(text or "{}", type=dict[str, Any]))
        for place, text in zip(places.to_pylist(), texts, strict=True)
    ]


def _read(texts: pa.Array) -> pa.Table:
    if not len(texts):
        return _WRITTEN.empty_table()
    lines = "\n".join(texts.to_pylist()).encode()
    return pj.read_json(
        io.BytesIO(lines),
        # A text must not be longer than a block.
        read_options=pj.ReadOptions(block_size=min(max(_BLOCK_BYTES, len(lines)), 2**31 - 1)),
        parse_options=pj.ParseOptions(explicit_schema=_WRITTEN, unexpected_field_behavior="ignore"),
    )


def _lists(column: pa.Array) -> pa.Array:
    """The lists, empty where there was none."""
    return pc.fill_null(column, pa.scalar([], column.type))


def _dependencies(pairs: pa.Array) -> pa.Array:
    """[job id, kind] pairs as structs."""
    each = pairs.flatten()
    structs = pa.StructArray.from_arrays(
        [pc.list_element(each, place) for place in (0, 1)], fields=list(DEPENDENCY)
    )
    lengths = pc.list_value_length(pairs).to_numpy(zero_copy_only=False)
    offsets = pa.array([0, *lengths.cumsum()], pa.int32())
    return pa.ListArray.from_arrays(offsets, structs)
