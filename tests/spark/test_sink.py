"""Rows become jobs: every column, every store, each row once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from headrace import connect
from headrace.model import Job
from headrace.stores.base import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def jobs_of(url: str) -> list[Job]:
    async def read() -> list[Job]:
        async with await connect(url) as manager:
            return list(await manager.store.find(Query(limit=10_000)))

    return asyncio.run(read())


def write(df: DataFrame, url: str, **options: Any) -> None:
    writer = df.write.format("headrace").mode("append").option("url", url)
    for name, value in options.items():
        writer = writer.option(name, value)
    writer.save()


def test_every_column(spark: SparkSession, durable_url: str) -> None:
    df = spark.sql(
        """
        SELECT 'mail' AS type, named_struct('n', id, 's', concat('a"', id)) AS payload,
            'q' AS queue, 'high' AS priority, timestamp'2030-01-02 03:04:05.000006Z' AS run_at,
            array('b', 'a', 'b') AS tags, concat('k', id) AS key, 'acme' AS tenant,
            cast(NULL AS string) AS after
        FROM range(5)
        """
    )
    write(df, durable_url, write_id="w")
    jobs = jobs_of(durable_url)
    assert len(jobs) == 5
    one = min(jobs, key=lambda job: job.payload["n"])
    assert one.payload == {"n": 0, "s": 'a"0'}
    assert (one.type, one.queue, one.priority, one.tenant) == ("mail", "q", 1, "acme")
    assert one.tags == ("a", "b")
    assert one.key == "k0"
    assert one.run_at == datetime(2030, 1, 2, 3, 4, 5, 6, UTC)
    write(df, durable_url, write_id="w")
    assert len(jobs_of(durable_url)) == 5
