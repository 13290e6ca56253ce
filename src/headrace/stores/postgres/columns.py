"""The lists of columns that this store's SQL is filled in with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.stores.columns import EVENT, JOB, Column, Group
from headrace.stores.sqltext import names

_OF_BODIES = frozenset({Group.BODY, Group.PAYLOAD})
_OF_JOBS = frozenset({"max_attempts", "expires_at"})
"""How a job may run, but looked at, or checked, whenever it is changed."""


def table_of(column: Column) -> str:
    """The table that holds this column of a job: what is written once is kept apart from where it stands."""
    if column.name == "id" or (column.group in _OF_BODIES and column.name not in _OF_JOBS):
        return "bodies"
    return "jobs"


def _from_tables(columns: Iterable[Column]) -> str:
    return ",\n".join(f"{table_of(column)}.{column.name}" for column in columns)


LISTS: Mapping[str, str] = {
    "job.columns": names(JOB),
    "job.rows": _from_tables(JOB),
    "job.taken": names(JOB, "taken."),
    "job.in_body": ",\n".join(
        f"bodies.{column.name}" for column in JOB if table_of(column) == "bodies"
    ),
    "event.read": ",\n".join(
        f"events.{column.name}" for column in EVENT if column.name != "job_seq"
    ),
}
