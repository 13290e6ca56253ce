"""Delta tables, file by file: what a table holds now, and commits that replace some of it in one step.

Data files are written aside first and join the table with one commit of delta-rs, together with marks
(Delta's application transactions) that say what the commit was for. So a crash leaves files that nobody
refers to, never half a change, and whoever repeats the work sees by the mark that it is done. All paths in a
table are relative: its folder may be moved.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from headrace.errors import HeadraceError, InvalidInput
from headrace.spark.lake.statistics import are_whole, statistics_of

FILE_ROWS_MAX = 1_000_000
ROW_GROUP_ROWS = 131_072

_CONFIGURATION = {
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 7 days",
    # By default readers look at the statistics of the first 32 columns only.
    "delta.dataSkippingNumIndexedCols": "-1",
}


_STATISTICS = "headrace statistics"
"""The mark: from this version of `statistics_of` on, what the log says of the files can be relied on."""
_STATISTICS_VERSION = 1


class LakeTooNew(InvalidInput):
    """A table of the lake has columns that this version does not know. Nothing was changed."""

    code = "LAKE_TOO_NEW"


class LakeBusy(HeadraceError):
    """Another pipeline works on the lake. Nothing was changed."""

    code = "LAKE_BUSY"


class File(NamedTuple):
    """One data file of a snapshot."""

    path: str
    """Within the table's folder."""
    rows: int
    size_bytes: int
    partition: Mapping[str, Any]
    low: Mapping[str, Any]
    high: Mapping[str, Any]
    nulls: Mapping[str, int | None] = {}
    bounded: bool = True
    """Whether its statistics name every column's bounds, or none."""

    def may_hold(self, column: str, low: Any, high: Any) -> bool:
        """Whether a value between the two, both included, may be in it."""
        least, most = self.low.get(column), self.high.get(column)
        return least is None or most is None or not (most < low or least > high)

    def may_reach(self, column: str, low: Any) -> bool:
        """Whether a value of at least this may be in it."""
        if self.nulls.get(column) == self.rows:
            return False
        most = self.high.get(column)
        return most is None or bool(most >= low)


class Snapshot:
    """What a table held at one moment. Later commits leave it as it is, until its files are vacuumed."""

    def __init__(self, folder: Path, schema: pa.Schema, table: DeltaTable) -> None:
        self.folder = folder
        self.schema = schema
        self._table = table
        self.version: int = table.version()

    @cached_property
    def files(self) -> tuple[File, ...]:
        return tuple(_file(row) for row in self._actions().to_pylist())

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    def mark(self, name: str) -> int:
        """The number that the last commit with this mark bore; -1 if there was none."""
        found: int | None = self._table.transaction_version(name)
        return -1 if found is None else found

    def paths(self, files: Sequence[File] | None = None) -> list[str]:
        """Where the files lie now."""
        return [str(self.folder / file.path) for file in (self.files if files is None else files)]

    def high(self, column: str) -> Any:
        """The greatest value of a column, as the statistics of the files tell; None if it is empty."""
        told = [file.high.get(column) for file in self.files]
        untold = [file for file, high in zip(self.files, told, strict=True) if high is None]
        read = pc.max(self.read([column], files=untold)[column]).as_py() if untold else None
        return max((high for high in [*told, read] if high is not None), default=None)

    def read(
        self,
        columns: Sequence[str] | None = None,
        *,
        where: pc.Expression | None = None,
        files: Sequence[File] | None = None,
    ) -> pa.Table:
        """Rows of these files (None: of all). Columns that a file was written without are null in it."""
        chosen = self.files if files is None else files
        wanted = pa.schema([self.schema.field(name) for name in columns or self.schema.names])
        if not chosen:
            return wanted.empty_table()
        dataset = pds.dataset(
            [str(self.folder / file.path) for file in chosen],
            schema=self.schema,
            format="parquet",
            partitioning=pds.partitioning(flavor="hive", schema=self._partition_schema()),
            partition_base_dir=str(self.folder),
        )
        return dataset.to_table(columns=wanted.names, filter=where).cast(wanted)

    def _partition_schema(self) -> pa.Schema:
        names = self._table.metadata().partition_columns
        return pa.schema([self.schema.field(name) for name in names])

    def _actions(self) -> pa.Table:
        return pa.table(self._table.get_add_actions(flatten=True))


class Folder:
    """The folder of one Delta table."""

    def __init__(self, path: Path, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        self.path = path
        self.schema = schema
        self.partition_by = tuple(partition_by)

    @property
    def exists(self) -> bool:
        return DeltaTable.is_deltatable(str(self.path))

    def prepare(self) -> bool:
        """Create the table, or give it the columns that it lacks. True if anything was changed.

        Raises LakeTooNew.
        """
        if not self.exists:
            self.path.mkdir(parents=True, exist_ok=True)
            DeltaTable.create(
                str(self.path),
                self.schema,
                partition_by=list(self.partition_by),
                configuration=_CONFIGURATION,
            )
            self.flush(0)
            self.commit(self.snapshot(), (), marks={_STATISTICS: _STATISTICS_VERSION})
            for folder in self.path.parents[:2]:
                flush_folder(folder)
            return True
        table = DeltaTable(str(self.path))
        held = {field.name: field for field in table.schema().fields}
        wanted = {field.name: field for field in _delta_fields(self.schema)}
        if unknown := sorted(held.keys() - wanted.keys()):
            raise LakeTooNew(
                f"{self.path} has columns that this Headrace does not know: {', '.join(unknown)}; nothing "
                "was changed. It was written by a newer version: use that one"
            )
        if changed := [name for name, field in held.items() if field.type != wanted[name].type]:
            raise LakeTooNew(
                f"{self.path} has columns of another type than this Headrace writes: "
                f"{', '.join(changed)}; nothing was changed. Use the version that wrote it"
            )
        missing = [field for name, field in wanted.items() if name not in held]
        if missing:
            version = table.version()
            table.alter.add_columns(missing)
            self.flush(version)
        self.mend_statistics(even_if_marked=bool(missing))
        return bool(missing)

    def mend_statistics(self, *, even_if_marked: bool = False) -> None:
        """Give files the statistics that they lack: of text, which early versions left out; of new columns.

        Each file joins the table once more, with the same rows; whoever reads meanwhile sees old or new.
        """
        held = self.snapshot()
        if held.mark(_STATISTICS) >= _STATISTICS_VERSION and not even_if_marked:
            return
        names = [name for name in self.schema.names if name not in self.partition_by]
        again = [
            AddAction(
                path=file.path,
                size=file.size_bytes,
                partition_values=_spelled(file.partition),
                modification_time=int(time.time() * 1000),
                data_change=False,
                stats=json.dumps(statistics_of(held.read(names, files=[file]))),
            )
            for file in held.files
            if not file.bounded
        ]
        self.commit(held, again, marks={_STATISTICS: _STATISTICS_VERSION}, rows_change=False)

    def snapshot(self) -> Snapshot:
        return Snapshot(self.path, self.schema, DeltaTable(str(self.path)))

    def write(self, rows: pa.Table) -> list[AddAction]:
        """Data files with these rows. No reader sees them before they are committed."""
        return [
            action
            for values, part in _by_partition(rows.cast(self.schema), self.partition_by)
            for start in range(0, part.num_rows, FILE_ROWS_MAX)
            for action in [self._write(values, part.slice(start, FILE_ROWS_MAX))]
        ]

    def commit(
        self,
        base: Snapshot,
        add: Sequence[AddAction],
        remove: Sequence[File] = (),
        *,
        marks: Mapping[str, int] | None = None,
        rows_change: bool = True,
    ) -> None:
        """These files come, those go, and the marks are set: in one step, or not at all.

        Only if the table is still as it was at `base`, which the change was computed from; otherwise raises
        LakeBusy. Without `rows_change`, the files that come hold the rows of those that go.
        """
        now_ms = int(time.time() * 1000)
        gone = [
            RemoveAction(file.path, rows_change, now_ms, file.size_bytes, _spelled(file.partition))
            for file in remove
        ]
        table = DeltaTable(str(self.path), version=base.version)
        try:
            table.create_write_transaction(
                [*(replace(action, data_change=rows_change) for action in add), *gone],
                "append",
                table.schema(),
                list(self.partition_by),
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(name, n) for name, n in (marks or {}).items()],
                    max_commit_retries=0,
                ),
                post_commithook_properties=PostCommitHookProperties(
                    create_checkpoint=True, cleanup_expired_logs=False
                ),
            )
        except CommitFailedError as error:
            raise LakeBusy(
                f"{self.path} was changed by another writer since version {base.version}, which this change "
                "was computed from; nothing was changed. Let one pipeline at a time work on a lake, then run "
                "it again"
            ) from error
        self.flush(table.version(), add)

    def flush(self, version: int, added: Sequence[AddAction] = ()) -> None:
        """What was committed from this version on is there after a power cut, too.

        delta-rs leaves that to the operating system. But who commits may tell others to forget what the
        commit holds, and a log with a hole could not be read at all.
        """
        log = self.path / "_delta_log"
        while (entry := log / f"{version:020}.json").exists():
            _flush_file(entry)
            if (checkpoint := entry.with_suffix(".checkpoint.parquet")).exists():
                _flush_file(checkpoint)
                _flush_file(log / "_last_checkpoint")
            version += 1
        folders = {log, self.path}
        for action in added:
            folders.update((self.path / action.path).parents[: len(Path(action.path).parts) - 1])
        for folder in folders:
            flush_folder(folder)

    def _write(self, values: Mapping[str, Any], rows: pa.Table) -> AddAction:
        spelled = _spelled(values)
        place = Path(*(f"{name}={value}" for name, value in spelled.items()))
        path = place / f"part-{uuid.uuid4()}.parquet"
        full = self.path / path
        full.parent.mkdir(parents=True, exist_ok=True)
        with full.open("wb") as file:
            pq.write_table(
                rows,
                file,
                compression="zstd",
                compression_level=1,
                row_group_size=ROW_GROUP_ROWS,
            )
            file.flush()
            # What the log refers to must be there after a power cut.
            os.fsync(file.fileno())
        return AddAction(
            path=path.as_posix(),
            size=full.stat().st_size,
            partition_values=spelled,
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=json.dumps(statistics_of(rows)),
        )


def flush_folder(path: Path) -> None:
    """The names in it are there after a power cut, too."""
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _flush_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def without(
    snapshot: Snapshot, column: str, values: pa.Array, files: Sequence[File]
) -> tuple[list[File], pa.Table]:
    """Which of these files hold rows with one of the values, and the other rows of those files."""
    if not len(values):
        return [], snapshot.schema.empty_table()
    bounds = pc.min_max(values).as_py()
    touched: list[File] = []
    kept: list[pa.Table] = [snapshot.schema.empty_table()]
    for file in files:
        if not file.may_hold(column, bounds["min"], bounds["max"]):
            continue
        keys = snapshot.read([column], files=[file])[column]
        if not pc.any(pc.is_in(keys, values)).as_py():
            continue
        touched.append(file)
        rows = snapshot.read(files=[file])
        kept.append(rows.filter(pc.invert(pc.is_in(rows[column], values))))
    return touched, pa.concat_tables(kept)


def _by_partition(
    rows: pa.Table, partition_by: Sequence[str]
) -> list[tuple[Mapping[str, Any], pa.Table]]:
    found: list[tuple[Mapping[str, Any], pa.Table]] = []
    names = [name for name in rows.schema.names if name not in partition_by]
    for values in (
        rows.select(list(partition_by)).group_by(list(partition_by)).aggregate([]).to_pylist()
    ):
        part = rows
        for name, value in values.items():
            part = part.filter(pc.equal(part[name], pa.scalar(value, rows.schema.field(name).type)))
        found.append((values, part.select(names).combine_chunks()))
    return found


def _spelled(values: Mapping[str, Any]) -> dict[str, str | None]:
    """Partition values as the Delta log and the folders' names spell them."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
    }


def _file(row: Mapping[str, Any]) -> File:
    def part(prefix: str) -> dict[str, Any]:
        return {
            name.removeprefix(prefix): value
            for name, value in row.items()
            if name.startswith(prefix)
        }

    return File(
        path=row["path"],
        rows=row["num_records"] or 0,
        size_bytes=row["size_bytes"],
        partition=part("partition."),
        low=part("min."),
        high=part("max."),
        nulls=part("null_count."),
        bounded=are_whole(row),
    )


def _delta_fields(schema: pa.Schema) -> list[Any]:
    from deltalake import Schema

    return list(Schema.from_arrow(schema).fields)
