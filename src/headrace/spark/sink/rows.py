"""From Arrow batches to descriptions of jobs, with the reason for each row that cannot be one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headrace import validation
from headrace.errors import HeadraceError, InvalidInput, InvalidName, InvalidTime
from headrace.model import DEFAULT_TENANT
from headrace.spark.schemas import TIME
from headrace.spark.sink.naming import Naming
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.payloads import payload_texts
from headrace.spec import JobSpec

DATA_CHARS_MAX = 2_000
"""Of a bad row's own contents, where it is shown or kept."""
NUMBER = "row_number"
"""A column that staged rows have besides: the row's number in its partition."""

_TIME_MIN = pa.scalar(f"{validation.YEAR_MIN}-01-01T00:00:00Z").cast(TIME)
_TIME_END = pa.scalar(f"{validation.YEAR_MAX + 1}-01-01T00:00:00Z").cast(TIME)
_JSON_NULL = msgspec.Raw(b"null")


class BadRow(msgspec.Struct, frozen=True):
    """A row that cannot be a job."""

    partition: int
    row: int
    """Its number in the partition, from 0."""
    code: str
    reason: str
    data: str
    """The row as JSON, cut."""

    def __str__(self) -> str:
        return f"partition {self.partition}, row {self.row}: {self.reason} {self.data[:200]}"


class Row(msgspec.Struct, frozen=True):
    """A row that may be a job: the manager has the last word."""

    place: int
    """In its batch."""
    spec: JobSpec


class Reader:
    """Reads the batches of one partition in order. `tenant`: of rows that name none."""

    def __init__(self, options: SinkOptions, naming: Naming, tenant: str | None) -> None:
        self.options = options
        self.naming = naming
        self.tenant = tenant or DEFAULT_TENANT
        self._next = 0

    def read(self, record: pa.RecordBatch) -> Batch:
        """A batch whose numbers go on from the one before, unless it says itself which they are."""
        record = _in_plain_types(record)
        if NUMBER in record.schema.names:
            numbers = record.column(NUMBER).to_pylist()
            return Batch(self, record.drop_columns([NUMBER]), numbers)
        numbers = range(self._next, self._next + record.num_rows)
        self._next += record.num_rows
        return Batch(self, record, numbers)


class Batch:
    """Some rows of a partition, by their place in the batch."""

    def __init__(self, reader: Reader, record: pa.RecordBatch, numbers: Sequence[int]) -> None:
        self._reader = reader
        self.record = record
        self.numbers = numbers
        self.columns = dict(zip(record.schema.names, record.columns, strict=True))
        self.problems: dict[int, HeadraceError] = {}
        """What is wrong with rows, as far as has been found."""
        payload = self.columns.pop("payload", None)
        self.texts, found = payload_texts(pa.nulls(record.num_rows) if payload is None else payload)
        self.problems |= found
        if "run_at" in self.columns:
            self._check_times()

    def __len__(self) -> int:
        return int(self.record.num_rows)

    def rows(self, places: Iterable[int] | None = None) -> list[Row]:
        """The rows at these places (None: all) that can be described; the others become problems."""
        rows: list[Row] = []
        chosen = pa.array(range(len(self)) if places is None else places, pa.int64())
        names = list(self.columns)
        lists = [
            _values(column if places is None else column.take(chosen))
            for column in self.columns.values()
        ]
        texts = (self.texts if places is None else self.texts.take(chosen)).to_pylist()
        for place, text, *values in zip(chosen.to_pylist(), texts, *lists, strict=True):
            if place in self.problems:
                continue
            try:
                spec = self._spec(dict(zip(names, values, strict=True)))
                payload = msgspec.Raw(text.encode())
                named = msgspec.structs.replace(spec, id=self.id_of(place, spec), payload=payload)
                rows.append(Row(place, named))
            except HeadraceError as error:
                self.problems[place] = error
        return rows

    def sample(self, place: int) -> JobSpec:
        """The row as far as it has it in common with others: no id, key, time, dependencies or payload."""
        common = {
            name: _value(column[place])
            for name, column in self.columns.items()
            if name not in ("key", "run_at", "after")
        }
        return self._spec(common)

    def value(self, name: str, place: int) -> Any:
        return _value(self.columns[name][place])

    def bad_rows(self) -> list[BadRow]:
        """Every problem, in order."""
        partition = self._reader.naming.partition
        return [
            BadRow(partition, self.numbers[place], error.code, _reason(error), self._shown(place))
            for place, error in sorted(self.problems.items())
        ]

    def id_of(self, place: int, spec: JobSpec) -> str:
        naming = self._reader.naming
        if spec.key is None:
            return naming.by_row(self.numbers[place])
        return naming.by_key(
            validation.check_name(spec.tenant, "tenant"),
            validation.check_name(spec.queue, "queue"),
            validation.check_name(spec.type, "type"),
            validation.check_key(spec.key),
        )

    def _spec(self, values: dict[str, Any]) -> JobSpec:
        options = self._reader.options
        return JobSpec(
            type=_or(values.get("type"), options.type),
            queue=_or(values.get("queue"), options.queue),
            tenant=_or(values.get("tenant"), self._reader.tenant),
            priority=_priority(values.get("priority"), options.priority),
            run_at=values.get("run_at"),
            tags=_tags(values.get("tags")),
            key=values.get("key"),
            key_hold_seconds=None if values.get("key") is None else options.key_hold,
            after=_after(values.get("after")),
            payload=_JSON_NULL,
        )

    def _check_times(self) -> None:
        """Arrow's times reach further than Python's: those beyond are problems, and unset."""
        times = self.columns["run_at"].cast(TIME)
        beyond = pc.or_(pc.less(times, _TIME_MIN), pc.greater_equal(times, _TIME_END))
        if pc.any(beyond).as_py():
            for place in pc.indices_nonzero(beyond.fill_null(False)).to_pylist():  # noqa: FBT003 - Arrow's signature
                self.problems[place] = InvalidTime(
                    f"run_at is outside {validation.YEAR_MIN} to {validation.YEAR_MAX}"
                )
            times = pc.if_else(beyond, None, times)
        self.columns["run_at"] = times

    def _shown(self, place: int) -> str:
        """The row as JSON for people: cut, and readable whatever is in it."""
        values = {
            name: _value(self.record.column(name)[place]) for name in self.record.schema.names
        }
        try:
            text = msgspec.json.encode(values, enc_hook=repr).decode()
        except (TypeError, ValueError, UnicodeError, msgspec.MsgspecError):
            text = repr(values)
        return text[:DATA_CHARS_MAX]


def _in_plain_types(record: pa.RecordBatch) -> pa.RecordBatch:
    """With strings of the one kind that we know: with `useLargeVarTypes` Spark sends another."""
    schema = pa.schema([_plain_field(field) for field in record.schema])
    return record if schema.equals(record.schema) else record.cast(schema)


def _plain(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_map(type_):
        return pa.map_(_plain_field(type_.key_field), _plain_field(type_.item_field))
    if pa.types.is_list(type_):
        return pa.list_(_plain_field(type_.value_field))
    if pa.types.is_struct(type_):
        return pa.struct([_plain_field(field) for field in type_])
    return type_


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain(field.type))


def _values(column: pa.Array) -> Sequence[Any]:
    try:
        values: Sequence[Any] = column.to_pylist()
    except UnicodeDecodeError:
        return [_value(scalar) for scalar in column]
    return values


def _value(scalar: pa.Scalar) -> Any:
    """As Python has it; what Python has no value for, as text or bytes that no rule takes."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        return error.object
    except (ValueError, OverflowError):
        return " ".join(pa.repeat(scalar, 1).to_string().split())


def _or(given: Any, default: str | None) -> Any:
    if given is not None:
        return given
    if default is None:
        raise InvalidName(f"the row has no type, and no default was given; {validation.UNCHANGED}")
    return default


def _priority(given: Any, default: int) -> int:
    if given is None:
        return default
    return validation.check_priority(given)


def _tags(given: Any) -> Any:
    if given is None:
        return ()
    if given and isinstance(given[0], tuple):  # a map, as Arrow gives it
        tags = dict(given)
        empty = [name for name, value in tags.items() if value is None]
        if empty:
            raise InvalidName(f"the tag {empty[0][:40]!r} has no value; {validation.UNCHANGED}")
        return tags
    return given


def _after(given: Any) -> Any:
    if given is None:
        return ()
    ids = [given] if isinstance(given, str) else given
    if None in ids:
        raise InvalidInput(f"after holds a null; {validation.UNCHANGED}")
    return ids


def _reason(error: HeadraceError) -> str:
    """What is said of all rows alike is left out."""
    return error.message.removesuffix(f"; {validation.UNCHANGED}").removesuffix(
        "; nothing was stored"
    )
