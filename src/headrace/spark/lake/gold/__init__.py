"""The gold tables: what the history of jobs says, ready to be read. One module per table."""

from __future__ import annotations

from pathlib import Path

from headrace.spark.lake.gold import (
    backlog,
    errors,
    latency,
    objectives,
    outcomes,
    paths,
    retries,
    slo,
    tenants,
    throughput,
    workers,
)
from headrace.spark.lake.storage import Storage
from headrace.spark.lake.table import Table

__all__ = ["GOLD", "of_lake"]


def of_lake(lake: str | Path | Storage) -> tuple[Table, ...]:
    """The gold tables, judged by the objectives of this lake. InvalidInput if those make no sense."""
    return _tables(objectives.read(lake))


def _tables(judged_by: tuple[objectives.Objective, ...]) -> tuple[Table, ...]:
    return (
        throughput.TABLE,
        latency.TABLE,
        outcomes.TABLE,
        errors.TABLE,
        retries.TABLE,
        workers.TABLE,
        tenants.TABLE,
        slo.table(judged_by),
        backlog.TABLE,
        paths.TABLE,
    )


GOLD = _tables(objectives.DEFAULT)
"""The gold tables with the default objectives."""
