"""How fast a DataFrame becomes jobs on PostgreSQL, beside COPY of the same rows into one plain table.

    python bench/servers.py postgres bench/spark_sink.py --rows 1000000

COPY is by ADBC, from as many processes as Spark has tasks, into a table with the ids as its primary key. The
ratio says what a job costs beyond its bytes: an event, eight indexes, and being repeatable. `submit_many` is
the manager's own way, for fewer rows.

A first turn is run and not counted: in it Java gets warm, and a new server makes the files of its write-ahead
log. Before each measurement what the one before has stored is dropped, and a checkpoint is taken: otherwise
autovacuum and the checkpointer work through that while the next one is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import asyncpg
import pyarrow as pa
from adbc_driver_postgresql import dbapi
from pyspark.sql import DataFrame, SparkSession

from headrace import connect
from headrace.spark import session
from headrace.spec import JobSpec
from headrace.stores.postgres import opening

PAYLOAD = (
    "named_struct('order', id, 'customer', concat('customer-', id % 10000), 'amount', id % 977 * 1.5D, "
    "'express', id % 7 = 0) AS payload"
)
SUBMIT_BATCH = 5_000
COPIED = "headrace_bench_copied"


def main() -> None:
    options = parse()
    with TemporaryDirectory() as folder:
        spark = session(
            master=f"local[{options.tasks},3]",
            app_name="headrace sink bench",
            config={"spark.local.dir": folder, "spark.sql.warehouse.dir": str(Path(folder) / "w")},
        )
        df = rows(spark, options)
        df.count()  # made before any clock starts
        run(df, options)
        spark.stop()


def run(df: DataFrame, options: argparse.Namespace) -> None:
    urls = (options.url.format(n=number) for number in range(1, 100))
    for turn in range(options.turns + 1):
        # In turns, so that whatever else the machine does hits all alike.
        copied = rate(options.rows, copy, df, next(urls))
        stored = rate(options.rows, write, df, next(urls), atomic="false")
        whole = rate(options.rows, write, df, next(urls), atomic="true")
        submitted = rate(options.submitted, submit, options.submitted, next(urls))
        print(f"turn {turn}" if turn else "turn 0, not counted", flush=True)
        print(f"  COPY of the same rows        {copied:>10,.0f} rows/s")
        print(
            f"  DataFrame to jobs            {stored:>10,.0f} jobs/s   {stored / copied:.2f} of COPY"
        )
        print(
            f"  the same, all or nothing     {whole:>10,.0f} jobs/s   {whole / copied:.2f} of COPY"
        )
        print(
            f"  submit_many, one process     {submitted:>10,.0f} jobs/s   a {stored / submitted:.0f}th",
            flush=True,
        )


def rows(spark: SparkSession, options: argparse.Namespace) -> DataFrame:
    columns = ["'order' AS type", PAYLOAD]
    if options.keys:
        columns.append("concat('key-', id) AS key")
    if options.tags:
        columns.append("array(concat('region-', id % 10), 'bulk') AS tags")
    return spark.range(0, options.rows, 1, options.tasks).selectExpr(*columns).cache()


def rate(count: int, call: Any, given: Any, url: str, **named: str) -> float:
    asyncio.run(settle(url))
    start = time.perf_counter()
    call(given, url, **named)
    taken = time.perf_counter() - start
    asyncio.run(drop(url))
    return count / taken


async def settle(url: str) -> None:
    """The server has nothing left to do. Without the right to a checkpoint it may still have."""
    connection = await asyncpg.connect(opening.parse(url, schema="headrace", pool_size=1).dsn)
    with contextlib.suppress(asyncpg.InsufficientPrivilegeError):
        await connection.execute("CHECKPOINT")
    await connection.close()
    await asyncio.to_thread(os.sync)
    await asyncio.sleep(1)


async def drop(url: str) -> None:
    """What a measurement has stored."""
    to = opening.parse(url, schema="headrace", pool_size=1)
    connection = await asyncpg.connect(to.dsn)
    await connection.execute(f'DROP SCHEMA IF EXISTS "{to.schema}" CASCADE')
    await connection.execute(f"DROP TABLE IF EXISTS {COPIED}")
    await connection.close()


def write(df: DataFrame, url: str, atomic: str) -> None:
    df.write.format("headrace").mode("append").options(url=url, queue="bench", atomic=atomic).save()


def copy(df: DataFrame, url: str) -> None:
    """COPY and nothing else: id, type and payload as text."""
    dsn = opening.parse(url, schema="headrace", pool_size=1).dsn
    asyncio.run(make_table(dsn))

    def ingest(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with dbapi.connect(dsn) as connection, connection.cursor() as cursor:
            for batch in batches:
                cursor.adbc_ingest(COPIED, batch, mode="append")
            connection.commit()
        yield pa.record_batch({"done": [1]})

    texts = df.selectExpr(
        "concat('df-20261116192300-', lpad(payload.order, 12, '0')) AS id",
        "type",
        "to_json(payload) AS payload",
    )
    texts.mapInArrow(ingest, "done long").count()


async def make_table(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        f"CREATE TABLE {COPIED} (id text PRIMARY KEY, type text, payload text)"
    )
    await connection.close()


def submit(count: int, url: str) -> None:
    asyncio.run(submit_all(url, count))


async def submit_all(url: str, count: int) -> None:
    async with await connect(url) as manager:
        for start in range(0, count, SUBMIT_BATCH):
            await manager.submit_many(
                [
                    JobSpec(type="order", queue="bench", payload=payload(number))
                    for number in range(start, min(start + SUBMIT_BATCH, count))
                ]
            )


def payload(number: int) -> dict[str, Any]:
    return {
        "order": number,
        "customer": f"customer-{number % 10_000}",
        "amount": number % 977 * 1.5,
        "express": number % 7 == 0,
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", required=True, help="with a place for a number: …&schema=bench{n}")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--submitted", type=int, default=50_000)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--keys", action="store_true", help="a key for every row")
    parser.add_argument("--tags", action="store_true", help="two tags for every row")
    return parser.parse_args()


if __name__ == "__main__":
    main()
