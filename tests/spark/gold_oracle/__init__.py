"""Gold in plain Python: each table as its documentation has it, from the events alone.

Loops and dicts over what `tests.spark.oracle` makes of the events; nothing of the SQL that is judged by it.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.model import Event
from headrace.spark.lake.gold.objectives import DEFAULT, Objective
from tests.spark import oracle
from tests.spark.gold_oracle import (
    backlog,
    errors,
    latency,
    outcomes,
    paths,
    retries,
    slo,
    tenants,
    throughput,
    workers,
)
from tests.spark.oracle import Row

__all__ = ["tables"]


def tables(
    events: Sequence[Event], objectives: Sequence[Objective] = DEFAULT
) -> dict[str, list[Row]]:
    """The rows of every gold table, by its name."""
    jobs, attempts = oracle.histories(events), oracle.attempts(events)
    return {
        "gold/throughput": throughput.rows(jobs, attempts),
        "gold/latency": latency.rows(attempts),
        "gold/outcomes": outcomes.rows(jobs, attempts),
        "gold/errors": errors.rows(jobs, attempts),
        "gold/retries": retries.rows(jobs, attempts),
        "gold/workers": workers.rows(attempts),
        "gold/tenants": tenants.rows(attempts),
        "gold/slo": slo.rows(jobs, attempts, objectives),
        "gold/backlog": backlog.rows(jobs),
        "gold/paths": paths.rows(jobs),
    }
