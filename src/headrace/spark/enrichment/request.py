"""What is asked of an enrichment, checked before anything is stored or started."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from pyspark.sql import types as t

from headrace import validation
from headrace.app import Task
from headrace.crypto import KeyRing
from headrace.errors import InvalidInput
from headrace.policy import Policies
from headrace.redaction import Redacted
from headrace.spark.fleet.plan import shared_url
from headrace.spark.sink.columns import KNOWN as PAYLOAD_RULES
from headrace.spec import JobSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RESULT_COLUMNS = ("result", "error", "attempts", "seconds")
NAME_CHARS_MAX = 64
BATCH_SIZE_MAX = 10_000
ROWS_ARGUMENT = "rows"
"""Of a task that is only known by its name."""

_NAME = re.compile(rf"[A-Za-z0-9._:-]{{1,{NAME_CHARS_MAX}}}")
_KEY_TYPES = (
    t.StringType,
    t.ByteType,
    t.ShortType,
    t.IntegerType,
    t.LongType,
    t.BooleanType,
    t.DateType,
    t.TimestampType,
    t.DecimalType,
)


class Request(Redacted, frozen=True, kw_only=True):
    """One enrichment as its Spark tasks know it. It travels to the executors: no secrets but the url."""

    name: str
    url: str
    tenant: str | None
    policies: Policies | None
    template: JobSpec
    """The job of every row, but for its id and payload."""
    batch_size: int
    rows_argument: str | None
    """The argument that takes a group of rows. None: each row is a job, its columns are the arguments."""
    limit_by: str | None
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    primary_key: str | None
    """What contents are encrypted with; executors must have the same ring."""

    types: tuple[str, ...]
    """The types of jobs whose results count: the task's own, and those of its earlier versions."""

    @property
    def tag(self) -> str:
        return f"enrich={self.name}"

    @property
    def row_prefix(self) -> str:
        """What the id of a row's job begins with."""
        return f"{self.name}-"

    @property
    def group_prefix(self) -> str:
        """What the id of a group's job begins with."""
        return f"{self.name}-group-"


def make_request(
    df: DataFrame,
    task: Task[..., Any] | str,
    *,
    key: str | Sequence[str],
    name: str | None,
    url: str | None,
    columns: Sequence[str] | None,
    batch_size: int,
    queue: str | None,
) -> Request:
    """Raises InvalidInput for whatever can never work."""
    keys = (key,) if isinstance(key, str) else tuple(key)
    _check_keys(df, keys)
    _check_reserved(df)
    validation.check_limit(batch_size, "batch_size", maximum=BATCH_SIZE_MAX)
    template = _template(task, queue)
    chosen_name = name if name is not None else template.type.replace("@", ":")
    if not _NAME.fullmatch(chosen_name):
        raise InvalidInput(
            f"the name of an enrichment, {chosen_name!r}, must have 1 to {NAME_CHARS_MAX} letters, digits, "
            f"dots, colons, dashes or underscores; {validation.UNCHANGED}"
        )
    app = task.app if isinstance(task, Task) else None
    if url is None and app is None:
        raise InvalidInput(
            f"a task that is only named needs the store's url; {validation.UNCHANGED}"
        )
    is_single = batch_size == 1
    rows_argument = None if is_single else _rows_argument(task)
    ring = (None if app is None else app.keys) or KeyRing.from_environment()
    return Request(
        name=chosen_name,
        url=shared_url(url or (app.url if app is not None else "")),
        tenant=None if app is None else app.tenant,
        policies=None if app is None else app.policies,
        template=template,
        batch_size=batch_size,
        rows_argument=rows_argument,
        limit_by=task.given.limit_by if isinstance(task, Task) and is_single else None,
        keys=keys,
        columns=_columns(df, task, keys, columns, is_single=is_single),
        primary_key=None if ring is None else ring.primary,
        types=task.types if isinstance(task, Task) else (template.type,),
    )


def _template(task: Task[..., Any] | str, queue: str | None) -> JobSpec:
    if isinstance(task, Task):
        template = task.template
        if template.id is not None:
            raise InvalidInput(
                f"task {task.name!r} was given an id, and an enrichment has many jobs; "
                f"{validation.UNCHANGED}"
            )
    else:
        template = JobSpec(type=validation.check_name(task, "name of the task"))
    if queue is not None:
        template = replace(template, queue=validation.check_name(queue, "queue"))
    return template


def _check_keys(df: DataFrame, keys: Sequence[str]) -> None:
    if not keys:
        raise InvalidInput(f"an enrichment needs a key; {validation.UNCHANGED}")
    _check_there(df, keys, "the key")
    for one in keys:
        type_ = df.schema[one].dataType
        if not isinstance(type_, _KEY_TYPES):
            raise InvalidInput(
                f"the key {one!r} is of type {type_.simpleString()}; a key must be text, a whole or decimal "
                f"number, a date, a time or true and false: something exact; {validation.UNCHANGED}"
            )


def _check_reserved(df: DataFrame) -> None:
    taken = [one for one in df.columns if one.lower() in RESULT_COLUMNS]
    if taken:
        raise InvalidInput(
            f"the DataFrame has a column {taken[0]!r} already, which enrich would add; rename it; "
            f"{validation.UNCHANGED}"
        )


def _check_there(df: DataFrame, names: Sequence[str], what: str) -> None:
    for one in names:
        if df.columns.count(one) != 1:
            raise InvalidInput(
                f"{what} {one!r} is not one column of the DataFrame, which has "
                f"{', '.join(df.columns)}; {validation.UNCHANGED}"
            )


def _columns(
    df: DataFrame,
    task: Task[..., Any] | str,
    keys: Sequence[str],
    given: Sequence[str] | None,
    *,
    is_single: bool,
) -> tuple[str, ...]:
    """What the task gets of each row."""
    if given is not None:
        if isinstance(given, str) or not given:
            raise InvalidInput(f"columns must be a list of names; {validation.UNCHANGED}")
        chosen = tuple(dict.fromkeys(given))
    elif is_single and isinstance(task, Task):
        takes = _parameters(task)
        chosen = tuple(one for one in df.columns if one in takes)
    else:
        chosen = tuple(df.columns)
    _check_there(df, chosen, "the column")
    PAYLOAD_RULES["payload"]("row", t.StructType([df.schema[one] for one in chosen]))
    if is_single:
        if isinstance(task, Task):
            _check_arguments(task, chosen)
        return chosen
    # A group's rows are known again by their keys.
    return tuple(dict.fromkeys((*keys, *chosen)))


def _check_arguments(task: Task[..., Any], columns: Sequence[str]) -> None:
    takes = _parameters(task)
    unknown = [one for one in columns if one not in takes]
    if unknown:
        raise InvalidInput(
            f"task {task.name!r} has no argument {unknown[0]!r}: give the columns that it takes, "
            f"{', '.join(takes)}; {validation.UNCHANGED}"
        )
    for name, parameter in takes.items():
        if parameter.default is inspect.Parameter.empty and name not in columns:
            raise InvalidInput(
                f"task {task.name!r} needs the argument {name!r}, and there is no such column; "
                f"{validation.UNCHANGED}"
            )
    if not columns:
        raise InvalidInput(
            f"task {task.name!r} takes none of the DataFrame's columns; {validation.UNCHANGED}"
        )


def _rows_argument(task: Task[..., Any] | str) -> str:
    if isinstance(task, str):
        return ROWS_ARGUMENT
    needed = [
        name
        for name, parameter in _parameters(task).items()
        if parameter.default is inspect.Parameter.empty
    ]
    if len(needed) != 1:
        raise InvalidInput(
            f"with batch_size, task {task.name!r} must take one argument, a list of rows; it takes "
            f"{', '.join(needed) or 'none'}; {validation.UNCHANGED}"
        )
    return needed[0]


def _parameters(task: Task[..., Any]) -> dict[str, inspect.Parameter]:
    """The arguments of the job: those of the function but for its context."""
    taken = dict(inspect.signature(task.function).parameters)
    if task.arguments.context_name is not None:
        del taken[task.arguments.context_name]
    return taken
