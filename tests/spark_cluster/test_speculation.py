"""Real speculation: Spark runs a slow task a second time, elsewhere, and both attempts write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.writing import events_of, jobs_of
from tests.spark_cluster.cluster import Cluster
from tests.stores.postgres import server as postgres

ROWS = 800
PARTITIONS = 4
SLOW = 2

DRIVER = """
import sys, time
from pathlib import Path
from pyspark import TaskContext
from headrace.spark import session

master, url, folder, atomic, rows, partitions, slow = sys.argv[1:]
spark = session(
    master=master,
    app_name="speculation",
    config={
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.minTaskRuntime": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
    },
)


def slowly(batches):
    task = TaskContext.get()
    Path(folder, f"{task.partitionId()}-{task.attemptNumber()}").touch()
    for batch in batches:
        yield batch
        if task.partitionId() == int(slow) and task.attemptNumber() == 0:
            # Until the other attempt has begun, and then on: both write at once.
            while not Path(folder, f"{slow}-1").exists():
                time.sleep(0.05)


df = spark.range(0, int(rows), 1, int(partitions))
df = df.selectExpr("'t' AS type", "named_struct('n', id) AS payload")
df = df.mapInArrow(slowly, df.schema)
df.write.format("headrace").mode("append").options(url=url, atomic=atomic, batch_size=50).save()
spark.stop()
"""

pytestmark = [pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore::ResourceWarning")]


class TwoHosts(Cluster):
    """Each worker on a loopback address of its own: Spark speculates only on another host."""

    def _start(self, name: str, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        _, _, number = name.partition("worker-")
        where = ("--host", f"127.0.0.{int(number) + 1}") if number else ()
        return super()._start(name, kind, *where, *arguments)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="headrace-cluster-"))
    started = TwoHosts(folder, workers=2)
    yield started
    started.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres.running(durable=False) as started:
        yield started


@pytest.mark.parametrize(
    ("kind", "atomic"), [("postgresql", "false"), ("postgresql", "true"), ("sqlite", "false")]
)
def test_a_speculated_task_stores_no_row_twice_and_loses_none(
    cluster: Cluster, server: str, tmp_path: Path, kind: str, atomic: str
) -> None:
    url = (
        postgres.with_options(server, schema=f"speculation_{atomic}")
        if kind == "postgresql"
        else f"sqlite:///{tmp_path / 'jobs.db'}"
    )
    marks = tmp_path / "marks"
    marks.mkdir()
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    ended = subprocess.run(
        [sys.executable, str(script), cluster.url, url, str(marks), atomic]
        + [str(number) for number in (ROWS, PARTITIONS, SLOW)],
        cwd=tmp_path,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert (marks / f"{SLOW}-1").exists()  # it was speculated, not merely slow
    stored = Counter(job.payload["n"] for job in jobs_of(url))
    assert stored == dict.fromkeys(range(ROWS), 1)
    assert len(events_of(url)) == ROWS
