"""From Arrow batches to descriptions of jobs, with the reason for each row that cannot be one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from headrace import validation
from headrace.errors import HeadraceError, InvalidInput, InvalidName
from headrace.model import DEFAULT_TENANT
from headrace.spark.schemas import TIME
from headrace.spark.sink.naming import Naming
from headrace.spark.sink.options import SinkOptions, priority
from headrace.spark.sink.payloads import payload_texts
from headrace.spec import JobSpec

DATA_CHARS_MAX = 2_000
"""Of a bad row's own contents, where it is shown or kept."""


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

    number: int
    spec: JobSpec


class Reader:
    """Reads the batches of one partition in order. `tenant`: of rows that name none."""

    def __init__(self, options: SinkOptions, naming: Naming, tenant: str | None) -> None:
        self._options = options
        self._naming = naming
        self._tenant = tenant or DEFAULT_TENANT
        self._next = 0

    @property
    def next_row(self) -> int:
        return self._next

    def read(self, batch: pa.RecordBatch) -> tuple[list[Row], list[BadRow]]:
        """Its rows, in order. Numbers go on from the batch before."""
        first = self._next
        self._next += batch.num_rows
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        texts, problems = (
            payload_texts(columns.pop("payload")) if "payload" in columns else (None, {})
        )
        payloads = texts.to_pylist() if texts is not None else ["null"] * batch.num_rows
        rows: list[Row] = []
        bad: list[BadRow] = []
        for place, values in enumerate(_dicts(columns, batch.num_rows)):
            try:
                if place in problems:
                    raise problems[place]
                rows.append(Row(first + place, self._spec(first + place, values, payloads[place])))
            except HeadraceError as error:
                bad.append(self.bad(first + place, error, batch, place))
        return rows, bad

    def bad(self, number: int, error: HeadraceError, batch: pa.RecordBatch, place: int) -> BadRow:
        reason = error.message.removesuffix(f"; {validation.UNCHANGED}")
        reason = reason.removesuffix("; nothing was stored")
        return BadRow(self._naming.partition, number, error.code, reason, _shown(batch, place))

    def _spec(self, number: int, values: dict[str, Any], payload: str) -> JobSpec:
        options = self._options
        given = JobSpec(
            type=_or(values.get("type"), options.type),
            queue=_or(values.get("queue"), options.queue),
            tenant=_or(values.get("tenant"), self._tenant),
            priority=_priority(values.get("priority"), options.priority),
            run_at=values.get("run_at"),
            tags=_tags(values.get("tags")),
            key=values.get("key"),
            after=_after(values.get("after")),
            payload=msgspec.Raw(payload.encode()),
        )
        return msgspec.structs.replace(given, id=self._id(number, given))

    def _id(self, number: int, given: JobSpec) -> str:
        if given.key is None:
            return self._naming.by_row(number)
        assert given.tenant is not None
        return self._naming.by_key(given.tenant, given.queue, given.type, given.key)


def _dicts(columns: dict[str, pa.Array], rows: int) -> Iterator[dict[str, Any]]:
    """Each row's values by name. A text that is no Unicode is not one."""
    names = list(columns)
    lists = [_values(columns[name]) for name in names]
    if not names:
        yield from ({} for _ in range(rows))
    for values in zip(*lists, strict=True):
        yield dict(zip(names, values, strict=True))


def _values(column: pa.Array) -> Sequence[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(TIME)
    try:
        values: Sequence[Any] = column.to_pylist()
    except UnicodeDecodeError:
        return [_value(scalar) for scalar in column]
    return values


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        return error.object  # bytes: refused as no text, like any other


def _or(given: Any, default: str | None) -> Any:
    if given is not None:
        return given
    if default is None:
        raise InvalidName(f"the row has no type, and no default was given; {validation.UNCHANGED}")
    return default


def _priority(given: Any, default: int) -> int:
    if given is None:
        return default
    return priority(given) if isinstance(given, str) else validation.check_priority(given)


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


def _shown(batch: pa.RecordBatch, place: int) -> str:
    """The row as JSON for people: cut, and readable whatever is in it."""
    values = {
        name: _value(column[place])
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    try:
        text = msgspec.json.encode(values, enc_hook=repr).decode()
    except (TypeError, ValueError, UnicodeError, msgspec.MsgspecError):
        text = repr(values)
    return text[:DATA_CHARS_MAX]
