"""Delta tables, file by file: what a table holds now, and commits that replace some of it in one step.

Data files are written aside first and join the table with one commit of delta-rs, together with marks
(Delta's application transactions) that say what the commit was for, and a note of what whoever goes on from
there has to know. So a crash leaves files that nobody refers to, never half a change, and whoever repeats the
work sees by the mark that it is done. All paths in a table are relative: its folder may be moved.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from headrace.errors import HeadraceError, InvalidInput
from headrace.spark.lake.statistics import are_whole, statistics_of
from headrace.spark.lake.storage import Storage, flush_folder

FILE_ROWS_MAX = 1_000_000
ROW_GROUP_ROWS = 131_072
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""In the name of a folder: the partition of rows without a value."""

_CONFIGURATION = {
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 7 days",
    # By default readers look at the statistics of the first 32 columns only.
    "delta.dataSkippingNumIndexedCols": "-1",
}


_NOTE = "headrace"
"""Under this name a commit's information holds the note."""
_NOTE_WITHIN = 64
"""So many commits back a note is looked for: others may have worked on the table."""
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

    def may_begin_before(self, begin: str, end: str, moment: Any) -> bool:
        """Whether a row may lie in it whose beginning, or end if that is earlier, lies before this."""
        lows = [self.low.get(begin), self.low.get(end)]
        return any(low is None or low < moment for low in lows)


class Snapshot:
    """What a table held at one moment. Later commits leave it as it is, until its files are vacuumed."""

    def __init__(self, storage: Storage, schema: pa.Schema, table: DeltaTable) -> None:
        self.storage = storage
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

    @cached_property
    def note(self) -> Mapping[str, Any]:
        """What the last commit with a note has noted; empty if there was none."""
        for within in (1, _NOTE_WITHIN):
            for noted in self.notes(within):
                return noted
        return {}

    def notes(self, within: int) -> Iterator[Mapping[str, Any]]:
        """Those of the last commits, the latest first, as far as the log still tells."""
        for commit in self._table.history(within):
            if _NOTE in commit:
                yield json.loads(commit[_NOTE])

    def read(
        self,
        columns: Sequence[str] | None = None,
        *,
        where: pc.Expression | None = None,
        files: Sequence[File] | None = None,
    ) -> pa.Table:
        """Rows of these files (None: of all). Columns that a file was written without are null in it."""
        chosen = self.files if files is None else files
        names = self._table.metadata().partition_columns
        return read_files(
            self.storage,
            self.schema,
            names,
            [file.path for file in chosen],
            columns=columns,
            where=where,
        )

    def _actions(self) -> pa.Table:
        return pa.table(self._table.get_add_actions(flatten=True))


def read_files(
    storage: Storage,
    schema: pa.Schema,
    partition_by: Sequence[str],
    paths: Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    where: pc.Expression | None = None,
) -> pa.Table:
    """Rows of data files of one table. Columns that a file was written without are null in it."""
    wanted = pa.schema([schema.field(name) for name in columns or schema.names])
    if not paths:
        return wanted.empty_table()
    filesystem, root = storage.filesystem()
    dataset = pds.dataset(
        [f"{root}/{path}" for path in paths],
        schema=schema,
        format="parquet",
        filesystem=filesystem,
        partitioning=pds.partitioning(
            flavor="hive", schema=pa.schema([schema.field(name) for name in partition_by])
        ),
        partition_base_dir=root,
    )
    return dataset.to_table(columns=wanted.names, filter=where).cast(wanted)


def read_range(
    storage: Storage, path: str, wanted: pa.Schema, column: str, bounds: tuple[int, int]
) -> pa.Table:
    """The rows of one data file whose value in a column lies between the two, both included.

    Row groups that hold none are passed over. Columns that the file lacks are null; so are those that its
    folder's name tells.
    """
    low, high = bounds
    with storage.open_input(path) as source:
        file = pq.ParquetFile(source)
        leaves = file.metadata.schema
        place = next(at for at in range(len(leaves.names)) if leaves.column(at).path == column)
        groups = [
            number
            for number in range(file.metadata.num_row_groups)
            if _overlaps(file.metadata.row_group(number).column(place).statistics, low, high)
        ]
        held = [name for name in wanted.names if name in file.schema_arrow.names]
        rows = file.read_row_groups(groups, columns=list(dict.fromkeys([*held, column])))
    inside = pc.and_(
        pc.greater_equal(rows[column], pa.scalar(low, rows[column].type)),
        pc.less_equal(rows[column], pa.scalar(high, rows[column].type)),
    )
    # First the types: other writers keep text in a form that cannot be filtered.
    found = with_columns(rows, wanted)
    return found if pc.all(inside, min_count=0).as_py() else found.filter(inside)


def with_columns(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    """With these columns; those that a file was written without are null."""
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.schema.names
        else pa.nulls(rows.num_rows, field.type)
        for field in wanted
    ]
    return pa.table(columns, schema=wanted)


def _overlaps(statistics: Any, low: int, high: int) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    return bool(statistics.min <= high and statistics.max >= low)


class Folder:
    """Where one Delta table lies, and what its columns are. Travels to the tasks that write its files."""

    def __init__(
        self,
        storage: Storage,
        schema: pa.Schema,
        partition_by: Sequence[str],
        comments: Mapping[str, str] | None = None,
    ) -> None:
        self.storage = storage
        self.schema = schema
        self.partition_by = tuple(partition_by)
        self._comments = dict(comments or {})

    @property
    def exists(self) -> bool:
        return self.storage.holds_table()

    def prepare(self, *, name: str | None = None, description: str | None = None) -> bool:
        """Create the table, or give it the columns that it lacks. True if anything was changed.

        Of two who create it, one does. Raises LakeTooNew.
        """
        if not self.exists:
            if self.storage.is_local:
                self.storage.path.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(TableNotFoundError, DeltaError):
                DeltaTable.create(
                    self.storage.delta_url,
                    self._commented(self.schema),
                    partition_by=list(self.partition_by),
                    name=name,
                    description=description,
                    configuration=_CONFIGURATION,
                    storage_options=self.storage.delta_options,
                    commit_properties=CommitProperties(
                        app_transactions=[Transaction(_STATISTICS, _STATISTICS_VERSION)]
                    ),
                )
            self._check_made()
            self.flush(0)
            if self.storage.is_local:
                for folder in self.storage.path.parents[:2]:
                    flush_folder(folder)
            return True
        table = self.storage.delta()
        held = {field.name: field for field in table.schema().fields}
        wanted = {field.name: field for field in _delta_fields(self._commented(self.schema))}
        if unknown := sorted(held.keys() - wanted.keys()):
            raise LakeTooNew(
                f"{self.storage} has columns that this Headrace does not know: {', '.join(unknown)}; nothing "
                "was changed. It was written by a newer version: use that one"
            )
        if changed := [name for name, field in held.items() if field.type != wanted[name].type]:
            raise LakeTooNew(
                f"{self.storage} has columns of another type than this Headrace writes: "
                f"{', '.join(changed)}; nothing was changed. Use the version that wrote it"
            )
        missing = [field for name, field in wanted.items() if name not in held]
        if missing:
            version = table.version()
            table.alter.add_columns(missing)
            self.flush(version)
        self.mend_statistics(even_if_marked=bool(missing))
        return bool(missing)

    def _check_made(self) -> None:
        if not self.exists:
            raise OSError(f"no table could be made at {self.storage}")

    def _commented(self, schema: pa.Schema) -> pa.Schema:
        """With what each column means, for those who read the table and not our pages."""
        return pa.schema(
            [
                field.with_metadata({"comment": self._comments[field.name]})
                if field.name in self._comments
                else field
                for field in schema
            ]
        )

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
        return Snapshot(self.storage, self.schema, self.storage.delta())

    def write(
        self, rows: pa.Table, cuts: Callable[[pa.Table], Iterable[pa.Table]] | None = None
    ) -> list[AddAction]:
        """Data files with these rows. No reader sees them before they are committed.

        `cuts` parts the rows of a file into its row groups.
        """
        return [
            action
            for values, part in _by_partition(rows.cast(self.schema), self.partition_by)
            for start in range(0, part.num_rows, FILE_ROWS_MAX)
            for action in [self._write(values, part.slice(start, FILE_ROWS_MAX), cuts)]
        ]

    def commit(
        self,
        base: Snapshot,
        add: Sequence[AddAction],
        remove: Sequence[File] = (),
        *,
        marks: Mapping[str, int] | None = None,
        note: Mapping[str, Any] | None = None,
        rows_change: bool = True,
    ) -> None:
        """These files come, those go, the marks are set, and the note is taken: in one step, or not at all.

        Only if the table is still as it was at `base`, which the change was computed from; otherwise raises
        LakeBusy. Without `rows_change`, the files that come hold the rows of those that go. Without a note
        the last one holds on.
        """
        now_ms = int(time.time() * 1000)
        gone = [
            RemoveAction(file.path, rows_change, now_ms, file.size_bytes, _spelled(file.partition))
            for file in remove
        ]
        told = base.note if note is None else note
        table = self.storage.delta(base.version)
        try:
            table.create_write_transaction(
                [*(replace(action, data_change=rows_change) for action in add), *gone],
                "append",
                table.schema(),
                list(self.partition_by),
                commit_properties=CommitProperties(
                    custom_metadata={_NOTE: json.dumps(told)} if told else None,
                    app_transactions=[Transaction(name, n) for name, n in (marks or {}).items()],
                    max_commit_retries=0,
                ),
                post_commithook_properties=PostCommitHookProperties(
                    create_checkpoint=True, cleanup_expired_logs=False
                ),
            )
        except CommitFailedError as error:
            raise LakeBusy(
                f"{self.storage} was changed by another writer since version {base.version}, which this "
                "change was computed from; nothing was changed. Let one pipeline at a time work on a lake, "
                "then run it again"
            ) from error
        self.flush(table.version(), add)

    def flush(self, version: int, added: Sequence[AddAction] = ()) -> None:
        """What was committed from this version on is there after a power cut, too.

        delta-rs leaves that to the operating system. But who commits may tell others to forget what the
        commit holds, and a log with a hole could not be read at all.
        """
        if not self.storage.is_local:
            return
        names = []
        while (self.storage.path / (entry := f"_delta_log/{version:020}.json")).exists():
            names.append(entry)
            checkpoint = f"_delta_log/{version:020}.checkpoint.parquet"
            if (self.storage.path / checkpoint).exists():
                names += [checkpoint, "_delta_log/_last_checkpoint"]
            version += 1
        self.storage.flush(names)
        folders = {
            folder
            for action in added
            for folder in (self.storage.path / action.path).parents[
                : len(action.path.split("/")) - 1
            ]
        }
        for folder in folders:
            flush_folder(folder)

    def _write(
        self,
        values: Mapping[str, Any],
        rows: pa.Table,
        cuts: Callable[[pa.Table], Iterable[pa.Table]] | None,
    ) -> AddAction:
        spelled = _spelled(values)
        path = "/".join(
            [
                *(
                    f"{name}={_NO_VALUE if value is None else value}"
                    for name, value in spelled.items()
                ),
                f"part-{uuid.uuid4()}.parquet",
            ]
        )
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, rows.schema, compression="zstd", compression_level=1) as writer:
            for group in [rows] if cuts is None else cuts(rows):
                writer.write_table(group, row_group_size=ROW_GROUP_ROWS)
        size = self.storage.write(path, sink.getvalue())
        return AddAction(
            path=path,
            size=size,
            partition_values=spelled,
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=json.dumps(statistics_of(rows)),
        )


def _by_partition(
    rows: pa.Table, partition_by: Sequence[str]
) -> list[tuple[Mapping[str, Any], pa.Table]]:
    if not partition_by:
        return [({}, rows.combine_chunks())] if rows.num_rows else []
    found: list[tuple[Mapping[str, Any], pa.Table]] = []
    names = [name for name in rows.schema.names if name not in partition_by]
    for values in (
        rows.select(list(partition_by)).group_by(list(partition_by)).aggregate([]).to_pylist()
    ):
        part = rows
        for name, value in values.items():
            one = pa.scalar(value, rows.schema.field(name).type)
            here = pc.is_null(part[name]) if value is None else pc.equal(part[name], one)
            part = part.filter(pc.fill_null(here, fill_value=False))
        found.append((values, part.select(names).combine_chunks()))
    return found


def _spelled(values: Mapping[str, Any]) -> dict[str, str | None]:
    """Partition values as the Delta log and the folders' names spell them."""
    return {
        name: None
        if value is None
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
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
