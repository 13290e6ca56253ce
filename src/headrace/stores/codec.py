"""Readers and writers of rows, compiled from the list of columns.

A row is positional both ways, and reading and writing rows is where a store spends its Python time. So
the functions are made as one would write them by hand, without any loop over columns: as source text,
compiled once when the store is imported. `source_of` shows it; tracebacks do, too.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from headrace.model import Category, EventKind, Failure, State
from headrace.stores.columns import LANE_KEY, Column, Kind

Read = TypeVar("Read")

Convert = Callable[[Any], Any] | Mapping[Any, Any]
"""How a value becomes another: what to call with it, or where to look it up."""

STATE_OF: Mapping[str, State] = {str(state): state for state in State}
"""Looking a state up is ten times faster than calling the enumeration."""
CATEGORY_OF: Mapping[str, Category] = {str(category): category for category in Category}
KIND_OF: Mapping[str, EventKind] = {str(kind): kind for kind in EventKind}

WORDS: dict[Kind, Convert] = {
    Kind.STATE: STATE_OF,
    Kind.CATEGORY: CATEGORY_OF,
    Kind.EVENT_KIND: KIND_OF,
}
"""For stores that keep the words of the model as they are."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """How a store holds each kind of value. A kind that is not named is held as it is.

    Where a column may be NULL, None stays None, unless the dialect says in `..._null` what is to be made of
    any value, None among them.
    """

    reads: Mapping[Kind, Convert] = {}
    reads_null: Mapping[Kind, Convert] = {}
    writes: Mapping[Kind, Convert] = {}
    writes_null: Mapping[Kind, Convert] = {}


def reader(
    struct: type[Read],
    *rows: Sequence[Column],
    dialect: Dialect,
    computed: Mapping[str, str] | None = None,
) -> Callable[..., Read]:
    """A function that makes a Job or an Event of one or several positional rows.

    It takes as many rows as there are lists of columns, and, if a lane is among them, after them a
    function from its number to its key. Fields without a column keep their default. `computed` gives
    fields as expressions of the names of columns.
    """
    code = _Code()
    columns = list(itertools.chain.from_iterable(rows))
    arguments = [f"row_{number}" for number in range(1, len(rows) + 1)]
    for argument, names in zip(arguments, rows, strict=True):
        code.line(f"{_tuple(column.name for column in names)} = {argument}")
    given: list[str] = []
    lane = next((column.name for column in columns if column.kind is Kind.LANE), None)
    if lane is not None:
        arguments.append("lane_key")
        words = [column.name for column in LANE_KEY]
        code.line(f"{_tuple(words)} = lane_key({lane})")
        given += [f"{word}={word}" for word in words if word in _fields(struct)]
    failure = [column for column in columns if "." in column.field]
    given += [
        f"{column.field}={code.read(column, dialect)}"
        for column in columns
        if column.field and column not in failure
    ]
    given += [f"{field}={expression}" for field, expression in (computed or {}).items()]
    if failure:
        parts = {column.field.partition(".")[2]: column for column in failure}
        made = ", ".join(
            code.read(parts[part], dialect, sure=part != "code") for part in _fields(Failure)
        )
        whole = f"{code.known('Failure', Failure)}({made})"
        given.append(f"failure=None if {parts['message'].name} is None else {whole}")
    code.line(f"return {code.known(struct.__name__, struct)}({_lines(given)})")
    made_reader: Callable[..., Read] = code.function(f"read_{struct.__name__.lower()}", arguments)
    return made_reader


def writer(
    columns: Sequence[Column], *, dialect: Dialect, given: Sequence[str] = ()
) -> Callable[..., tuple[Any, ...]]:
    """A function that makes the parameters of one row: it takes the job or event, and what is `given`.

    `given` names columns whose values are arguments, as the store holds them, in this order.
    """
    code = _Code()
    values = [
        column.name if column.name in given else _written(code, column, dialect)
        for column in columns
    ]
    if any("." in column.field for column in columns):
        code.line("failure = item.failure")
    code.line(f"return ({_lines(values)})")
    made: Callable[..., tuple[Any, ...]] = code.function("parameters", ["item", *given])
    return made


def lists_writer(
    columns: Sequence[Column], *, dialect: Dialect, given: Sequence[str] = ()
) -> Callable[..., list[list[Any]]]:
    """As `writer`, for many: one list per column. What is `given` are such lists."""
    code = _Code()
    lists = [
        column.name
        if column.name in given
        else f"[{_written(code, column, dialect, failure='item.failure')} for item in items]"
        for column in columns
    ]
    code.line(f"return [{_lines(lists)}]")
    made: Callable[..., list[list[Any]]] = code.function("lists", ["items", *given])
    return made


def source_of(compiled: Callable[..., Any]) -> str:
    """The text that a reader or writer was compiled from."""
    return "".join(linecache.getlines(compiled.__code__.co_filename))


def _tuple(names: Iterable[str]) -> str:
    return f"({', '.join(names)},)"


def _lines(expressions: Iterable[str]) -> str:
    """One line each, so that a traceback names the column."""
    return "".join(f"\n        {expression}," for expression in expressions)


def _written(code: _Code, column: Column, dialect: Dialect, failure: str = "failure") -> str:
    """The expression for what `item` has in this column."""
    of, dot, part = column.field.partition(".")
    if not dot:
        return code.write(column, f"item.{of}", dialect)
    value = code.write(column, f"{failure}.{part}", dialect, sure=part != "code")
    return f"None if {failure} is None else {value}"


def _fields(struct: type) -> tuple[str, ...]:
    fields: tuple[str, ...] = getattr(struct, "__struct_fields__")  # noqa: B009 - every Struct has it
    return fields


class _Code:
    """The body of one function, and the names that it needs."""

    _numbers = itertools.count(1)

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._known: dict[str, Any] = {}

    def line(self, text: str) -> None:
        self._lines.append(text)

    def known(self, name: str, value: Any) -> str:
        self._known[name] = value
        return name

    def read(self, column: Column, dialect: Dialect, *, sure: bool = False) -> str:
        return self._converted(
            "read", column, column.name, dialect.reads, dialect.reads_null, sure=sure
        )

    def write(self, column: Column, value: str, dialect: Dialect, *, sure: bool = False) -> str:
        return self._converted(
            "write", column, value, dialect.writes, dialect.writes_null, sure=sure
        )

    def _converted(
        self,
        verb: str,
        column: Column,
        value: str,
        converts: Mapping[Kind, Convert],
        converts_null: Mapping[Kind, Convert],
        *,
        sure: bool,
    ) -> str:
        """The expression for a value; `sure`: it is not None, although the column may be NULL."""
        may_be_none = column.nullable and not sure
        if may_be_none and column.kind in converts_null:
            return self._apply(f"_{verb}_{column.kind}_or_none", converts_null[column.kind], value)
        if column.kind not in converts:
            return value
        made = self._apply(f"_{verb}_{column.kind}", converts[column.kind], value)
        return f"None if {value} is None else {made}" if may_be_none else made

    def _apply(self, name: str, convert: Convert, value: str) -> str:
        self.known(name, convert)
        return f"{name}[{value}]" if isinstance(convert, Mapping) else f"{name}({value})"

    def function(self, name: str, arguments: Iterable[str]) -> Any:
        body = "".join(f"    {line}\n" for line in self._lines)
        source = f"def {name}({', '.join(arguments)}):\n{body}"
        file = f"<headrace.stores.codec {name} {next(self._numbers)}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec"), self._known)  # noqa: S102 - our own text, from our own list
        return self._known[name]
