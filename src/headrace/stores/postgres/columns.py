"""The lists of columns that this store's SQL is filled in with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.stores.columns import EVENT, JOB, Column, Group, of
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


LISTS: Mapping[str, str] = {
    "job.columns": names(JOB),
    "job.rows": _from_tables(JOB),
    "claimed.from_tables": _from_tables(CLAIMED),
    "claimed.from_leased": names(CLAIMED, "leased."),
    "event.read": ",\n".join(
        f"events.{column.name}" for column in EVENT if column.name != "job_seq"
    ),
}
