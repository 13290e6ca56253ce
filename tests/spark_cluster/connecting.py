"""Everything of the Spark part that a Spark Connect session can do, in a process of its own.

    python tests/spark_cluster/connecting.py sc://127.0.0.1:15002 sqlite:///jobs.db FOLDER

A process holds either a classic session or Connect ones, so the tests' own cannot do this. Prints a JSON
document of what it saw.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headrace import Headrace, JobSpec, connect
from headrace.errors import HeadraceError
from headrace.spark import enrich, fleet, pipeline, session

SOURCE = """
from headrace import Headrace

app = Headrace({url!r})


@app.task
async def double(n: int) -> int:
    return 2 * n
"""


def main(remote: str, url: str, folder: str) -> None:
    home = Path(folder)
    (home / "connected.py").write_text(SOURCE.format(url=url))
    sys.path.insert(0, folder)
    asyncio.run(_submit(url))
    spark = session(remote=remote)
    seen: dict[str, Any] = {}
    rows = spark.range(40).selectExpr("'told' AS type", "named_struct('n', id) AS payload")
    rows.write.format("headrace").mode("append").options(url=url, queue="sink").save()
    seen["jobs"] = _read(spark, url, "jobs").groupBy("type").count().toArrow().to_pylist()
    seen["events"] = _read(spark, url, "events").count()
    seen["streamed"] = _streamed(spark, url, home)
    seen["enriched"] = _enriched(spark, url)
    seen["fleet"] = _served(spark, url)
    try:
        pipeline.run(url, home / "lake", spark=spark)
    except HeadraceError as error:
        seen["pipeline"] = str(error)
    spark.stop()
    print(json.dumps(seen))


async def _submit(url: str) -> None:
    async with await connect(url) as manager:
        await manager.submit_many([JobSpec(type="plain", queue="idle") for _ in range(10)])


def _read(spark: SparkSession, url: str, table: str) -> Any:
    return spark.read.format("headrace").options(url=url, table=table).load()


def _streamed(spark: SparkSession, url: str, home: Path) -> int:
    query = (
        spark.readStream.format("headrace")
        .options(url=url, table="events")
        .load()
        .select("seq", "kind")
        .writeStream.format("parquet")
        .option("path", str(home / "streamed"))
        .option("checkpointLocation", str(home / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return spark.read.parquet(str(home / "streamed")).count()


def _enriched(spark: SparkSession, url: str) -> list[Any]:
    from connected import app  # type: ignore[import-not-found]  # written above

    assert isinstance(app, Headrace)
    numbers = spark.range(20).withColumnRenamed("id", "n")
    done = enrich(numbers, app.tasks["double"], key="n", url=url, workers=4, schema="bigint")
    return sorted(row.result for row in done.collect())


def _served(spark: SparkSession, url: str) -> int:
    async def submit() -> None:
        async with await connect(url) as manager:
            await manager.submit_many([JobSpec(type="double", payload={"n": n}) for n in range(30)])

    asyncio.run(submit())
    ended = fleet.run(fleet.Fleet(place="connected:app", tasks=1, drain=True, url=url), given=spark)
    return ended.total("completed")


if __name__ == "__main__":
    main(*sys.argv[1:])
