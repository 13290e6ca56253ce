"""What the rows of a table come to, in counts that go on with every change.

Bronze's commits carry what their events come to, silver's what their rows do. So the layers can be held
against each other on every run without reading a row: an event that was lost on the way, or a row told
twice, shows in the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

LEASE_EXPIRED = "lease_expired"
_WAITED = pa.array(["blocked", "pending", "retrying", "lost"], pa.string())

_Count = Callable[[pa.Table], int]


def _where(mask: pa.ChunkedArray) -> int:
    return int(pc.sum(pc.fill_null(mask, fill_value=False), min_count=0).as_py())


def _sum(column: str) -> _Count:
    return lambda rows: int(pc.sum(rows[column], min_count=0).as_py())


def _valid(column: str) -> _Count:
    return lambda rows: len(rows) - rows[column].null_count


def _in_state(state: str) -> _Count:
    return lambda rows: _where(pc.equal(rows["state"], state))


def _ended_waiting(rows: pa.Table) -> int:
    """Failed or died with no attempt to tell of it."""
    fatal = pc.is_in(rows["state"], value_set=pa.array(["failed", "dead"]))
    return _where(pc.and_(fatal, pc.is_in(rows["last_before"], value_set=_WAITED)))


def _lost(rows: pa.Table) -> pa.ChunkedArray:
    gave_up = pc.is_in(rows["outcome"], value_set=pa.array(["dead", "abandoned"]))
    return pc.or_(
        pc.equal(rows["outcome"], "lost"),
        pc.and_(gave_up, pc.fill_null(pc.equal(rows["code"], LEASE_EXPIRED), fill_value=False)),
    )


def _failed(rows: pa.Table) -> pa.ChunkedArray:
    failed = pc.is_in(rows["outcome"], value_set=pa.array(["retrying", "failed", "dead"]))
    expired = pc.fill_null(pc.equal(rows["code"], LEASE_EXPIRED), fill_value=False)
    return pc.and_(failed, pc.invert(expired))


def _busy_us(rows: pa.Table) -> int:
    """Clocks that were set back may have an attempt end before it began: no time passed."""
    spans = pc.subtract(rows["ended_at"].cast(pa.int64()), rows["leased_at"].cast(pa.int64()))
    return int(pc.sum(pc.max_element_wise(spans, 0, skip_nulls=False), min_count=0).as_py())


_COUNTS: Mapping[str, Mapping[str, _Count]] = {
    "silver/jobs": {
        "rows": len,
        "lives": _valid("born_seq"),
        "events": _sum("events"),
        "ended": _valid("finalized_at"),
        **{
            state: _in_state(state)
            for state in ("completed", "failed", "dead", "cancelled", "abandoned")
        },
        "ended_waiting": _ended_waiting,
        "wait_us": _sum("wait_us"),
        "run_us": _sum("run_us"),
    },
    "silver/attempts": {
        "rows": len,
        "ended": _valid("ended_at"),
        "first": lambda rows: _where(pc.equal(rows["attempt"], 1)),
        "extra": lambda rows: _where(pc.greater(rows["attempt"], 1)),
        "lost": lambda rows: _where(_lost(rows)),
        "failed": lambda rows: _where(_failed(rows)),
        "waits": _valid("wait_us"),
        "runs": lambda rows: _where(
            pc.and_(pc.is_valid(rows["ended_at"]), pc.is_valid(rows["run_us"]))
        ),
        "wait_us": _sum("wait_us"),
        "run_us": _sum("run_us"),
        "busy_us": _busy_us,
    },
}


def silver_counts(jobs: Mapping[str, int], attempts: Mapping[str, int]) -> dict[str, int]:
    """Both ledgers under the names that gold's totals go by."""
    return {
        **{f"jobs.{name}": count for name, count in jobs.items()},
        **{f"attempts.{name}": count for name, count in attempts.items()},
        "jobs.finished": sum(jobs.get(state, 0) for state in ("completed", "failed", "dead")),
        "errors": attempts.get("failed", 0)
        + attempts.get("lost", 0)
        + jobs.get("ended_waiting", 0),
    }


def tally(table: str, rows: pa.Table) -> dict[str, int]:
    """What these rows come to."""
    return {name: count(rows) for name, count in _COUNTS[table].items()}


def added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Both together; a count that one of them does not know begins at nothing."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}
