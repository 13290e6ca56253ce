"""The DataFrames of an enrichment: its rows by key, what the store knows of them, both joined."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql import types as t

from headrace.model import TERMINAL, State
from headrace.spark.enrichment.executors import (
    ID_CHARS,
    OUTCOMES_SCHEMA,
    TEXTS_SCHEMA,
    outcomes,
    texts,
)
from headrace.spark.enrichment.request import RESULT_COLUMNS, Request
from headrace.spark.enrichment.waiting import Found

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ID = "__headrace_id"
RANGE_JOBS = 20_000
_FAILED = [state.value for state in TERMINAL if state is not State.COMPLETED]


def keyed(df: DataFrame, request: Request) -> DataFrame:
    """With the id of each row's key; NULL where a part of the key is."""
    parts = [f.col(_quoted(one)) for one in request.keys]
    types = [df.schema[one].dataType for one in request.keys]
    is_null = reduce(lambda a, b: a | b, (part.isNull() for part in parts))
    return df.withColumn(ID, f.when(~is_null, _id(parts, types)))


def distinct_rows(with_ids: DataFrame, request: Request) -> DataFrame:
    """(id, text, differs, rows, problem): one for each key; `differs` where its rows are not alike."""
    sent = f.struct(*(f.col(_quoted(one)) for one in request.columns)).alias("row")
    written = with_ids.select(f.col(ID).alias("id"), sent).mapInArrow(texts(), TEXTS_SCHEMA)
    return written.groupBy("id").agg(
        f.min("text").alias("text"),
        (f.min("text") != f.max("text")).alias("differs"),
        f.count("*").alias("rows"),
        f.max("problem").alias("problem"),
    )


def stored_rows(
    spark: SparkSession, request: Request, stored: Found, key_types: t.StructType
) -> DataFrame:
    """What the store knows of each row that was ever submitted, by id; the best of several tries.

    (id, text, state, result, error, attempts, seconds, and `last`, the seq of the last try.) Reads the jobs
    in parallel, by seq.
    """
    if stored.jobs:
        ranges = _ranges(stored)
        asked = spark.createDataFrame(ranges, "after long, upto long")
        found = asked.repartition(len(ranges)).mapInArrow(outcomes(request), OUTCOMES_SCHEMA)
    else:
        found = spark.createDataFrame([], OUTCOMES_SCHEMA)
    if request.rows_argument is not None:
        row = f.from_json("row", key_types)
        types = [key_types[one].dataType for one in request.keys]
        found = found.withColumn("id", _id([row[one] for one in request.keys], types))
    # A result stands, whatever a later try says; else what is still open; else the last failure.
    rank = (
        f.when(f.col("state") == State.COMPLETED.value, 2)
        .when(~f.col("state").isin(_FAILED), 1)
        .otherwise(0)
    )
    kept = ("text", "state", *RESULT_COLUMNS)
    best = f.max_by(f.struct(*kept), f.struct(rank, f.col("seq")))
    return (
        found.groupBy("id")
        .agg(best.alias("best"), f.max("seq").alias("last"))
        .select("id", *(f.col(f"best.{one}").alias(one) for one in kept), "last")
    )


def joined(
    with_ids: DataFrame, stored: DataFrame, request: Request, result_type: t.DataType | None
) -> DataFrame:
    """Every row of the DataFrame, once, with what became of it."""
    names = [one for one in with_ids.columns if one != ID]
    found = stored.select(
        f.col("id").alias(ID),
        f.struct("state", *RESULT_COLUMNS).alias("__headrace_found"),
    )
    back = with_ids.join(found, ID, "left")
    gone = f.raise_error(
        f.lit(
            f"enrichment {request.name}: there is no job for a row. Either the DataFrame gave other rows "
            "before than now (write it down, or cache it), or the job was deleted since."
        )
    )
    outcome = f.coalesce("__headrace_found", gone)
    result = outcome["result"]
    if result_type is not None:
        result = _typed(result, result_type)
    return back.select(
        *(f.col(_quoted(one)) for one in names),
        result.alias("result"),
        *(outcome[one].alias(one) for one in RESULT_COLUMNS[1:]),
    )


def _typed(text: Column, type_: t.DataType) -> Column:
    """Wrapped, since only structs, arrays and maps can be read by themselves. What does not fit raises."""
    wrapped = f.concat(f.lit('{"value":'), text, f.lit("}"))
    schema = t.StructType([t.StructField("value", type_)])
    return f.from_json(wrapped, schema, {"mode": "FAILFAST"})["value"]


def _id(parts: Sequence[Column], types: Sequence[t.DataType]) -> Column:
    """A digest of the key: the same for the same values, whatever the session's settings."""
    exact = [_exact(part, type_) for part, type_ in zip(parts, types, strict=True)]
    return f.substring(f.sha2(f.to_json(f.array(*exact)), 256), 1, ID_CHARS)


def _exact(part: Column, type_: t.DataType) -> Column:
    """As text. Times as microseconds: their text would depend on the session's zone."""
    if isinstance(type_, t.TimestampType):
        part = f.unix_micros(part)
    return part.cast("string")


def _ranges(stored: Found) -> list[tuple[int, int]]:
    """Ranges (after, upto] that cover all of it from its first seq to its last."""
    parts = -(-stored.jobs // RANGE_JOBS)
    size = -(-(stored.last_seq - stored.first_seq + 1) // parts)
    starts = range(stored.first_seq, stored.last_seq + 1, size)
    return [(start - 1, min(start + size - 1, stored.last_seq)) for start in starts]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
