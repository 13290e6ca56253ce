"""Gold: who used what share of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headrace.spark.lake.gold import window
from headrace.spark.lake.table import Check, Column, Sources, Table, Total

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SPREAD = """inline(array(
    struct(leased_at AS at, 1L AS attempts, 0L AS run_us),
    struct(ended_at AS at, 0L AS attempts, run_us)))"""


def transform(sources: Sources) -> DataFrame:
    used = (
        window.attempts(sources)
        .selectExpr("tenant", _SPREAD)
        .where(window.within("at", sources.hours))
        .groupBy("tenant", sf.expr(window.hour_of("at")).alias("hour"))
        .agg(sf.expr("sum(attempts) AS attempts"), sf.expr("coalesce(sum(run_us), 0L) AS run_us"))
    )
    return used.selectExpr(
        "tenant",
        "hour",
        f"{window.day_of('hour')} AS day",
        "attempts",
        f"{window.seconds('run_us')} AS run_seconds",
        f"{_share('attempts')} AS attempts_share",
        f"{_share('run_us')} AS run_share",
    )


def _share(column: str) -> str:
    return f"coalesce({column} / nullif(sum({column}) OVER (PARTITION BY hour), 0), 0D)"


TABLE = Table(
    name="gold/tenants",
    grain="One row per tenant and hour in which an attempt of it started or ended.",
    key=("tenant", "hour"),
    columns=(
        Column("tenant", "string", "The tenant."),
        window.HOUR,
        window.DAY,
        Column("attempts", "bigint", "Attempts started in this hour."),
        Column("run_seconds", "double", "How long the attempts ran that ended in this hour."),
        Column("attempts_share", "double", "Its part of all attempts of the hour, 0 to 1."),
        Column("run_share", "double", "Its part of all run time of the hour, 0 to 1."),
    ),
    partition_by=("day",),
    transform=transform,
    changes_with=("attempts",),
    totals=(
        Total("attempts.rows", ("attempts",)),
        Total("attempts.run_us", ("run_seconds",), 1e6),
    ),
    checks=(
        Check(
            "shares of an hour sum to 1",
            """SELECT hour, sum(attempts_share) AS attempts_share, sum(run_share) AS run_share
            FROM gold_tenants GROUP BY hour
            HAVING (sum(attempts) > 0 AND abs(sum(attempts_share) - 1) > 1e-9)
                OR (sum(run_seconds) > 0 AND abs(sum(run_share) - 1) > 1e-9)""",
        ),
        Check(
            "tenants started every attempt of silver",
            """SELECT * FROM (SELECT coalesce(sum(attempts), 0) AS told FROM gold_tenants),
              (SELECT count(*) AS held FROM silver_attempts) WHERE told <> held""",
        ),
    ),
)
