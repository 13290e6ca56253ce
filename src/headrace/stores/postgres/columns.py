"""The lists of columns that this store's SQL is filled in with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from headrace.stores.columns import (
    COMPARED,
    EVENT,
    JOB,
    STANDING,
    Column,
    Group,
    Kind,
    named,
    of,
    own,
)
from headrace.stores.sqltext import names

_OF_BODIES = frozenset({Group.BODY, Group.PAYLOAD})
_OF_JOBS = frozenset({"max_attempts", "expires_at"})
"""How a job may run, but looked at, or checked, whenever it is changed."""


def table_of(column: Column) -> str:
    """The table that holds this column of a job: what is written once is kept apart from where it stands."""
    if column.name == "id" or (column.group in _OF_BODIES and column.name not in _OF_JOBS):
        return "bodies"
    return "jobs"


CLAIMED = of(JOB, without={"state", "token", "assignee", "assigned_at", "finalized_at"})
"""What a claim answers with: the rest follows from the claim itself. See `rows.read_claimed`."""


def _from_tables(columns: Iterable[Column]) -> str:
    return ",\n".join(f"{table_of(column)}.{column.name}" for column in columns)


def _values(table: Mapping[str, str]) -> str:
    """What these columns get, of a relation `new` with the columns INPUTS."""
    return ", ".join(
        "new.tags::text[]" if name == "tags" else f"new.{name}" for name in table.values()
    )


def _in(table: str) -> list[str]:
    return ["seq", "lane", *(one.name for one in JOB[3:] if table_of(one) == table)]


NEVER_AT_BIRTH = frozenset(
    column.name
    for column in JOB
    if column.nullable and column.group in {Group.STANDING, Group.RESULT, Group.NOTE}
)
"""What a job gets only by what happens to it."""

INPUTS = (
    *of(JOB, without={"seq"}),
    own("lease_us", Kind.INT),
    own("event_at", Kind.TIME),
    own("event_kind", Kind.EVENT_KIND),
    own("event_payload_bytes", Kind.INT),
    own("event_detail", Kind.JSON),
)
"""What an insertion is given for each job. Its seq and whether it is `early` are found while it is stored."""

BIRTH: Mapping[str, Mapping[str, str]] = {
    "bodies": {"id": "id"} | {name: name for name in _in("bodies")},
    "jobs": {name: name for name in (*_in("jobs"), "lease_us", "early")},
    "events": {
        "at": "event_at",
        "job_seq": "seq",
        "job_id": "id",
        "kind": "event_kind",
        "after": "state",
        "worker": "assignee",
        "payload_bytes": "event_payload_bytes",
        "detail": "event_detail",
        **{
            name: name
            for name in (
                "lane",
                "version",
                "attempt",
                "failures",
                "losses",
                "run_at",
                "lease_until",
            )
        },
    },
}
"""A new job in each table that it is written to: the columns, and which input each gets. The one definition,
whichever way the job comes."""


def only(inputs: Collection[str]) -> Mapping[str, Mapping[str, str]]:
    """BIRTH, where no other inputs are known. The rest is NULL."""
    return {
        table: {name: source for name, source in columns.items() if source in inputs}
        for table, columns in BIRTH.items()
    }


FRESH = only({"seq", "early", *(one.name for one in INPUTS if one.name not in NEVER_AT_BIRTH)})
"""Of a job that nothing has happened to."""

LOADED = only(
    {source for columns in FRESH.values() for source in columns.values()}
    - {"previous_id", "parent_id", "correlation_id", "callback_url", "backoff"}
)
"""Of a row of a bulk load."""

_TYPES = {
    Kind.INT: "integer",
    Kind.FLOAT: "double precision",
    Kind.JSON: "bytea",
    Kind.TIME: "timestamptz",
    Kind.LANE: "integer",
}


def _type(column: Column) -> str:
    return (
        "bigint"
        if column.name in ("lease_us", "wait_us", "run_us")
        else _TYPES.get(column.kind, "text")
    )


ALONE = tuple(one for one in INPUTS if one.name not in NEVER_AT_BIRTH)
"""What the statement for one new job is given."""


READ = named(JOB, "id", "lane", *(one.name for one in COMPARED), "lease_until")
"""What a commit compares with the stored job: all that the change was made from takes for granted."""
WRITTEN = (*STANDING, *of(JOB, Group.RESULT))
"""What a commit writes."""
TOLD = named(EVENT, "kind", "category", "code", "message", "wait_us", "run_us", "result_bytes")
"""What it is given of the event: the rest is the job's."""
_READ = {f"{one.name}_read": one for one in READ}
_CHANGE = {
    **_READ,
    **{one.name: one for one in WRITTEN},
    **{f"event_{one.name}": one for one in TOLD},
}
"""The inputs of a commit for each change."""


def _parameters(inputs: Mapping[str, Column]) -> str:
    return ",\n".join(f"{name}_each {_type(one)}[]" for name, one in inputs.items())


def _spreading(inputs: Iterable[str]) -> str:
    return "\n".join(f"{name}_each := headrace.spread({name}_each, row_count);" for name in inputs)


def _is_as_read(column: Column) -> str:
    equals = "IS NOT DISTINCT FROM" if column.nullable else "="
    return f"jobs.{column.name} {equals} change.{column.name}_read"


def _births(kind: str, tables: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """For the insertion into each table: the columns, their values, and which arrays of inputs they need."""
    lists: dict[str, str] = {}
    for table, columns in tables.items():
        given = [one for one in dict.fromkeys(columns.values()) if one != "early"]
        lists |= {
            f"{kind}.{table}": ", ".join(columns),
            f"{kind}.{table}.values": _values(columns),
            f"{kind}.{table}.arrays": ", ".join(f"{one}_each" for one in given),
            f"{kind}.{table}.names": ", ".join(given),
        }
    return lists


LISTS: Mapping[str, str] = {
    "new.parameters": _parameters({one.name: one for one in INPUTS}),
    "new.spread": _spreading(one.name for one in INPUTS),
    "alone.values": ",\n".join(
        f"${number}::{_type(one)} AS {one.name}" for number, one in enumerate(ALONE, start=1)
    ),
    "change.parameters": _parameters(_CHANGE),
    "change.spread": _spreading(_CHANGE),
    "change.arrays": ", ".join(f"{name}_each" for name in _CHANGE),
    "change.names": ", ".join(_CHANGE),
    "read.parameters": _parameters(_READ),
    "read.spread": _spreading(_READ),
    "read.arrays": ", ".join(f"{name}_each" for name in _READ),
    "read.names": ", ".join(_READ),
    "change.as_read": "\nAND ".join(
        _is_as_read(one) for one in READ if one.name not in ("id", "lease_until")
    ),
    "change.written": ",\n".join(
        f"{one.name} = change.{one.name}" for one in WRITTEN if one.name != "lease_until"
    ),
    "alone.channel": f"${len(ALONE) + 1}::text",
    "alone.sender": f"${len(ALONE) + 2}::text",
    **_births("new", BIRTH),
    **_births("fresh", FRESH),
    **_births("loaded", LOADED),
    "job.columns": names(JOB),
    "job.rows": _from_tables(JOB),
    "claimed.from_tables": _from_tables(CLAIMED),
    "claimed.from_leased": names(CLAIMED, "leased."),
    "event.read": ",\n".join(
        f"events.{column.name}" for column in EVENT if column.name != "job_seq"
    ),
}
