"""Keeping the lake small: many small files become few, and what no reader needs any more is deleted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake.transaction import AddAction

from headrace.spark.lake.bronze import by_buckets
from headrace.spark.lake.delta import File, Folder, read_files
from headrace.spark.lake.storage import Storage
from headrace.spark.lake.tasks import LocalTasks, Tasks

KEEP_HOURS = 24.0
"""A query may read an old version of a table for so long."""
EVERY_RUNS = 20
"""After so many runs the pipeline joins small files by itself."""
SMALL_BYTES = 32 * 1024 * 1024
"""A file below this is small; several of one partition become one."""
SEVERAL = 4
JOIN_ROWS_MAX = 1_000_000
"""Rows that a task holds in memory at once."""
LAYERS = ("bronze", "silver", "gold", "meta")


class Compacted(NamedTuple):
    tables: int
    """Those in which anything was joined."""
    files_before: int
    files_after: int
    removed: int = 0
    """Files that were deleted, as no version that is kept needs them."""


class Size(NamedTuple):
    table: str
    version: int
    rows: int
    files: int
    size_bytes: int


def tables_of(lake: Storage, layers: Sequence[str] = LAYERS) -> Iterator[tuple[str, Folder]]:
    """Every Delta table in the lake, with its columns as they are stored."""
    for layer in layers:
        for name in lake.within(layer).folders():
            storage = lake.within(f"{layer}/{name}")
            if not storage.holds_table():
                continue
            table = storage.delta()
            schema = pa.schema(table.schema().to_arrow())
            plain = pa.schema([field.remove_metadata() for field in schema])
            yield f"{layer}/{name}", Folder(storage, plain, table.metadata().partition_columns)


def sizes(lake: Storage) -> Iterator[Size]:
    """Of the tables that users read."""
    for name, folder in tables_of(lake, LAYERS[:3]):
        held = folder.snapshot()
        yield Size(name, held.version, held.rows, len(held.files), held.size_bytes)


def compact(lake: Storage, tasks: Tasks | None = None) -> Compacted:
    """Join small files of the same partition, table by table, each in one commit. The rows stay the same.

    Open rows are left alone: whoever takes batches in joins them, by bucket.
    """
    tables = before = after = 0
    for _, folder in tables_of(lake):
        held = folder.snapshot()
        before += len(held.files)
        groups = [group for group in _groups(held.files) if len(group) >= SEVERAL]
        if groups:
            tables += 1
            paths = [tuple(file.path for file in group) for group in groups]
            made = (tasks or LocalTasks()).run(partial(_joined, folder), paths)
            joined = [file for group in groups for file in group]
            actions = [action for part in made for action in part]
            folder.commit(held, actions, joined, rows_change=False)
        after += len(folder.snapshot().files)
    return Compacted(tables, before, after)


def _joined(folder: Folder, paths: Sequence[str]) -> list[AddAction]:
    rows = read_files(folder.storage, folder.schema, folder.partition_by, paths)
    if "seq" in rows.schema.names and "bucket" in rows.schema.names:
        return folder.write(
            rows.sort_by([("bucket", "ascending"), ("seq", "ascending")]), by_buckets
        )
    return folder.write(rows)


def vacuum(lake: Storage, keep_hours: float) -> int:
    """Delete files that no version of the last hours refers to; how many went."""
    gone = 0
    for _, folder in tables_of(lake):
        table = folder.storage.delta()
        version = table.version()
        gone += len(
            table.vacuum(
                retention_hours=math.ceil(keep_hours),
                dry_run=False,
                enforce_retention_duration=False,
                full=True,
            )
        )
        folder.flush(version)
        table.cleanup_metadata()
    return gone


def _groups(files: tuple[File, ...]) -> Iterator[list[File]]:
    """Small files of one partition, in the order of their rows, as many as fit in memory at once."""
    by_partition: dict[tuple[tuple[str, Any], ...], list[File]] = {}
    for file in files:
        if file.size_bytes < SMALL_BYTES and None not in file.partition.values():
            by_partition.setdefault(tuple(file.partition.items()), []).append(file)
    for small in by_partition.values():
        group: list[File] = []
        for file in sorted(small, key=_first):
            if group and sum(one.rows for one in group) + file.rows > JOIN_ROWS_MAX:
                yield group
                group = []
            group.append(file)
        yield group


def _first(file: File) -> tuple[int, str]:
    low: Mapping[str, Any] = file.low
    for name in ("seq", "last_seq", "leased_seq", "run"):
        if low.get(name) is not None:
            return low[name], file.path
    return 0, file.path
