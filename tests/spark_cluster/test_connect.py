"""A Spark Connect session, on a real Connect server from the pip package, on loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.spark.java import java_home
from tests.spark_cluster.cluster import free_port

PROGRAM = Path(__file__).parent / "connecting.py"
START_SECONDS_MAX = 90.0

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[str]:
    import pyspark

    home, port = Path(pyspark.__file__).parent, free_port()
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [
                str(home / "bin" / "spark-submit"),
                *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                *("--master", "local[2,3]"),
                *("--conf", f"spark.connect.grpc.binding.port={port}"),
                *("--conf", "spark.connect.grpc.binding.address=127.0.0.1"),
                *("--conf", "spark.driver.host=127.0.0.1"),
                *("--conf", "spark.driver.bindAddress=127.0.0.1"),
                *("--conf", "spark.ui.enabled=false"),
                *("--conf", f"spark.local.dir={tmp_path / 'scratch'}"),
                "spark-internal",
            ],
            cwd=tmp_path,
            env={
                **os.environ,
                "SPARK_HOME": str(home),
                "JAVA_HOME": str(java_home()),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": sys.executable,
            },
            stdout=log,
            stderr=log,
        )
        try:
            _until_it_listens(server, port, tmp_path / "server.log")
            yield f"sc://127.0.0.1:{port}"
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def test_a_connect_session_reads_writes_streams_enriches_and_runs_a_fleet(
    remote: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), remote, f"sqlite:///{tmp_path / 'jobs.db'}", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert {row["type"]: row["count"] for row in seen["jobs"]} == {"plain": 10, "told": 40}
    assert seen["events"] == seen["streamed"] == 50
    assert seen["enriched"] == [2 * n for n in range(20)]
    assert seen["fleet"] == 30
    assert "Spark Connect" in seen["pipeline"]
    assert "nothing was changed" in seen["pipeline"]


def _until_it_listens(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + START_SECONDS_MAX
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert server.poll() is None, log.read_text(errors="replace")[-4000:]
        assert time.monotonic() < end, log.read_text(errors="replace")[-4000:]
        time.sleep(0.2)
