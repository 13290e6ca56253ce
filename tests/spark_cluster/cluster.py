"""A real Spark cluster from the pip package: a standalone master and workers, on loopback only.

Each is a Java process that we start and end by its own id.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil  # type: ignore[import-untyped]  # comes with the wheel of the PostgreSQL server

from headrace.spark.java import java_home

_START_SECONDS = 60.0
_HOST = "127.0.0.1"


class Cluster:
    """A master and its workers, one core and 1 GB each."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self._logs: list[IO[bytes]] = []
        port = free_port()
        self.url = f"spark://{_HOST}:{port}"
        self.master = self._start(
            "master", "Master", "--port", str(port), "--webui-port", str(free_port())
        )
        self._until("master", "New state: ALIVE")
        self.workers = [self._start_worker(number) for number in range(workers)]
        for number in range(workers):
            self._until(f"worker-{number}", "Successfully registered with master")

    def executors(self) -> list[psutil.Process]:
        """The Java process of each executor, found as a child of the worker that started it."""
        return [
            child
            for worker in self.workers
            for child in psutil.Process(worker.pid).children(recursive=True)
            if _is_executor(child)
        ]

    def kill_executor(self) -> list[int]:
        """Kill -9 one executor and everything it has started: no signal handler runs. The pids."""
        executor = self.executors()[0]
        family = [executor, *executor.children(recursive=True)]
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        psutil.wait_procs(family, timeout=10)
        return [process.pid for process in family]

    def stop(self) -> None:
        for process in (*self.workers, self.master):
            process.terminate()
        for process in (*self.workers, self.master):
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for log in self._logs:
            log.close()

    def _start_worker(self, number: int) -> subprocess.Popen[bytes]:
        return self._start(
            f"worker-{number}",
            "worker.Worker",
            "--cores",
            "1",
            "--memory",
            "1g",
            "--webui-port",
            str(free_port()),
            "--work-dir",
            str(self.folder / f"work-{number}"),
            self.url,
        )

    def _start(self, name: str, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        import pyspark

        home = Path(pyspark.__file__).parent
        package = "master." if kind == "Master" else ""
        log = (self.folder / f"{name}.log").open("wb")
        self._logs.append(log)
        return subprocess.Popen(
            [
                str(home / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{package}{kind}",
                "--host",
                _HOST,
                *arguments,
            ],
            cwd=self.folder,
            env={
                **os.environ,
                "SPARK_HOME": str(home),
                "JAVA_HOME": str(java_home()),
                "SPARK_LOCAL_IP": _HOST,
                "SPARK_LOCAL_DIRS": str(self.folder / "scratch"),
                "PYSPARK_PYTHON": sys.executable,
            },
            stdout=log,
            stderr=log,
        )

    def _until(self, name: str, said: str) -> None:
        end = time.monotonic() + _START_SECONDS
        path = self.folder / f"{name}.log"
        while said not in path.read_text(errors="replace"):
            assert time.monotonic() < end, path.read_text(errors="replace")
            time.sleep(0.1)


@contextlib.contextmanager
def running(workers: int = 2) -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="headrace-cluster-"))
    cluster = Cluster(folder, workers)
    try:
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _is_executor(process: psutil.Process) -> bool:
    try:
        words = process.cmdline()
    except psutil.NoSuchProcess:
        return False
    return any("CoarseGrainedExecutorBackend" in word for word in words) and "java" in words[0]
