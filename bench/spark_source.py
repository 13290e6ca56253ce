# ruff: noqa: S608 - the texts are put together from our own words and numbers
"""Rows per second of the Spark source against a raw ADBC read of the same query, slice by slice.

    python bench/spark_source.py                                  # SQLite, 2 million events
    python bench/servers.py postgres bench/spark_source.py --events 500000
    python bench/spark_source.py --url 'postgresql://me@127.0.0.1/jobs?schema=bench{n}' --jdbc-jar pg.jar

JDBC needs a server that listens on a port. In turns: the raw read (as many processes as cores, rows only
counted), Spark into the noop sink, Spark JDBC if a jar is given. The bar is 0.6 of the raw read.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent.parent))


import pyarrow as pa

from bench import events
from headrace.spark import session
from headrace.spark.schemas import TABLES, spark_schema
from headrace.spark.source.batch import Reader
from headrace.spark.source.extract.adbc import batches
from headrace.spark.source.extract.base import Slice
from headrace.spark.source.extract.sqlite import SqliteExtract
from headrace.spark.source.options import SourceOptions
from headrace.stores.postgres import opening

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def count_raw(task: tuple[Any, str, Slice]) -> int:
    """The same columns of the same rows from the view, as the driver hands them out."""
    extract, table, piece = task
    view = "event_log" if table == "events" else "job_list"
    names = ", ".join(f'"{name}"' for name in TABLES[table].names)
    if isinstance(extract, SqliteExtract):
        names = names.replace('"cursor"', "CAST(seq AS TEXT)")
        # The driver takes the types from the first rows, which may be empty: see the extract.
        first = ", ".join(_SPECIMEN.get(field.type, "0") for field in TABLES[table])
        sql = (
            f"SELECT {first} UNION ALL SELECT {names} FROM {view} "
            f"WHERE seq > {piece.after} AND seq <= {piece.upto}"
        )
        settings = {"adbc.sqlite.query.batch_rows": 32_768}
    else:
        if table == "events":
            bounds = [
                f"(xid, seq) {sign} ({extract.place(cursor).sql})"
                for sign, cursor in ((">", piece.after), ("<=", piece.upto))
            ]
        else:
            bounds = [f"seq > {piece.after}", f"seq <= {piece.upto}"]
        sql = f'SELECT {names} FROM "{extract.schema}".{view} WHERE {" AND ".join(bounds)}'
        settings = {}
    with extract.connection() as connection:
        return sum(batch.num_rows for batch in batches(connection, sql, (), settings))


_SPECIMEN = {pa.string(): "''", pa.list_(pa.string()): "''", pa.float64(): "0.0"}


def shaped(task: tuple[Any, str, Slice]) -> int:
    """The rows of one slice, as Spark gets them."""
    extract, table, piece = task
    return sum(batch.num_rows for batch in extract.rows(table, piece, TABLES[table]))


def timed(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def jdbc(spark: SparkSession, url: str, table: str, rows: int, tasks: int) -> Callable[[], object]:
    """The same view in as many partitions by seq."""
    found = opening.parse(url, schema="headrace", pool_size=1)
    options = {
        "url": f"jdbc:{found.where}",
        "dbtable": f'"{found.schema}".{"event_log" if table == "events" else "job_list"}',
        "driver": "org.postgresql.Driver",
        "user": urlsplit(found.dsn).username or "postgres",
        "fetchsize": "10000",
        "partitionColumn": "seq",
        "lowerBound": "0",
        "upperBound": str(rows),
        "numPartitions": str(tasks),
    }
    frame = spark.read.format("jdbc").options(**options).load().drop("xid")
    return lambda: frame.write.format("noop").mode("overwrite").save()


def measure(url: str, table: str, arguments: argparse.Namespace) -> None:
    cores = os.cpu_count() or 2
    given = {"url": url, "table": table, "partitions": str(arguments.partitions or 2 * cores)}
    reader = Reader(SourceOptions.parse(given), spark_schema(TABLES[table]))
    slices = reader.partitions()
    tasks = [(reader._extract, table, piece) for piece in slices]  # noqa: SLF001 - a measurement of it
    config = {"spark.driver.memory": "2g"}
    if arguments.jdbc_jar:
        config["spark.jars"] = arguments.jdbc_jar
    spark = session(master=f"local[{cores}]", config=config)

    def noop() -> None:
        frame = spark.read.format("headrace").options(**given).load()
        frame.write.format("noop").mode("overwrite").save()

    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        rows = sum(pool.map(count_raw, tasks, chunksize=1))
        ways: dict[str, Callable[[], object]] = {
            "raw ADBC": lambda: pool.map(count_raw, tasks, chunksize=1),
            "ADBC, cast for Spark": lambda: pool.map(shaped, tasks, chunksize=1),
            "Spark source": noop,
        }
        if arguments.jdbc_jar:
            ways["Spark JDBC"] = jdbc(spark, url, table, rows, len(tasks))
        for act in ways.values():
            act()  # warm
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(arguments.rounds):
            for way, act in ways.items():
                seconds[way].append(timed(act))
    print(
        f"\n{table}: {rows:,} rows, {len(TABLES[table])} columns, {len(slices)} slices, {cores} cores\n"
    )
    print("| way | seconds (median) | rows/s | of the raw read |")
    print("|---|---|---|---|")
    for way, taken in seconds.items():
        ratio = statistics.median(
            raw / own for raw, own in zip(seconds["raw ADBC"], taken, strict=True)
        )
        middle = statistics.median(taken)
        print(f"| {way} | {middle:.2f} | {rows / middle:,.0f} | {ratio:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--url", help="{n} stands for a number")
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--tables", nargs="+", default=["events"], choices=["events", "jobs"])
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jdbc-jar", default="")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = (arguments.url or f"sqlite:///{folder}/jobs.db").replace("{n}", "1")
        taken = timed(lambda: events.make(url, arguments.events))
        print(f"made {arguments.events:,} events in {taken:.0f} s")
        for table in arguments.tables:
            measure(url, table, arguments)


if __name__ == "__main__":
    main()
