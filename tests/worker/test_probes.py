"""/live, /ready and /metrics of a worker: of one process, of several, and while the store is away."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from headrace import Headrace
from headrace.telemetry.exposition import merged
from headrace.worker import Settings, Worker, probes
from headrace.worker.probes import Answer, WorkerProbe, serving
from tests.stores.postgres.server import ENVIRONMENT, Server
from tests.worker.running import until

APPLICATION = """
from headrace import Headrace

app = Headrace("memory:")


@app.task
async def greet(name: str) -> str:
    return name
"""
PROCESSES = 2


class Replied(msgspec.Struct):
    status: int
    text: str

    @property
    def answer(self) -> Answer:
        return msgspec.json.decode(self.text, type=Answer)


def ask(port: int, path: str) -> Replied | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=15) as response:
            return Replied(response.status, response.read().decode())
    except urllib.error.HTTPError as error:
        return Replied(error.code, error.read().decode())
    except OSError:
        return None


async def status(port: int, path: str) -> int | None:
    reply = await asyncio.to_thread(ask, port, path)
    return None if reply is None else reply.status


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def server() -> Iterator[Server]:
    if ENVIRONMENT in os.environ:
        pytest.skip("only a server of our own may be killed")
    started = Server()  # killed, one that does not wait for the disk forgets its last commits
    try:
        yield started
    finally:
        started.stop()


@contextlib.asynccontextmanager
async def processes(folder: Path, url: str, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    (folder / "probed.py").write_text(APPLICATION)
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "headrace.cli", "--url", url, "worker", "probed:app"),
        *("--processes", str(PROCESSES), "--poll", "0.2s"),
        *("--health-port", str(port), "--metrics-port", str(port)),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), *sys.path))},
    )
    try:
        yield worker
    finally:
        if worker.returncode is None:
            worker.send_signal(signal.SIGTERM)
        await asyncio.wait_for(worker.wait(), 30)


@pytest.mark.timeout(120)
async def test_several_processes_answer_as_one_while_their_store_goes_and_comes_back(
    server: Server, tmp_path: Path
) -> None:
    port = free_port()
    async with processes(tmp_path, server.url, port) as worker:

        async def is_ready() -> bool:
            return await status(port, "/ready") == 200

        await until(is_ready)
        app = Headrace(server.url)

        @app.task
        async def greet(name: str) -> str:
            return name

        async with app:
            await app.wait(await greet.submit("Ada"), timeout=20)
        reply = await asyncio.to_thread(ask, port, "/metrics")
        assert reply is not None
        lines = reply.text.splitlines()
        done = [line for line in lines if line.startswith("headrace_attempts_total{")]
        assert [line.rpartition(" ")[2] for line in done] == ["1.0"]
        assert any(f'process="{number}"' in done[0] for number in range(PROCESSES))
        depth = 'headrace_jobs{queue="default",state="completed",tenant="default"} 1.0'
        assert lines.count(depth) == 1, "read from the store once, whoever is asked"

        await asyncio.to_thread(server.kill)
        reply = await asyncio.to_thread(ask, port, "/ready")
        assert reply is not None
        assert reply.status == 503
        assert "process 0" in str(reply.answer.why)
        assert len(reply.answer.processes or ()) == PROCESSES
        assert await status(port, "/live") == 200, "a restart would not bring the store back"
        reply = await asyncio.to_thread(ask, port, "/metrics")
        assert reply is not None
        assert "headrace_attempts_total" in reply.text

        await asyncio.to_thread(server.start_again)
        await until(is_ready)
        assert worker.returncode is None
    assert worker.returncode == 0


async def test_a_worker_is_ready_between_its_start_and_its_end() -> None:
    app = Headrace("memory:")

    @app.task
    async def nothing() -> None: ...

    probe = WorkerProbe()
    assert probe.live().ok
    assert probe.ready().why == "the worker is starting"
    async with app:
        worker = Worker(app, Settings(maintenance=False))
        probe.attach(worker)
        assert (await asyncio.to_thread(probe.ready)).ok
        worker.stop()
        assert probe.ready().why == "the worker is stopping"


async def test_a_blocked_loop_is_given_time_and_then_called_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Headrace("memory:")

    @app.task
    async def nothing() -> None: ...

    probe = WorkerProbe()
    probe.attach(Worker(app, Settings(maintenance=False)))
    asked: list[Answer] = []

    def ask_twice() -> None:
        asked.append(probe.live())
        monkeypatch.setattr(probes, "STUCK_SECONDS", 0.0)
        asked.append(probe.live())

    thread = threading.Thread(target=ask_twice)
    thread.start()
    time.sleep(0.05)  # noqa: ASYNC251 - a handler that blocks the loop
    thread.join()
    assert [one.ok for one in asked] == [True, False]
    assert "blocked the event loop" in str(asked[1].why)
    await asyncio.sleep(0)
    monkeypatch.undo()
    assert probe.live().ok, "it turns again"


async def test_a_loop_that_turns_while_it_is_asked_about_is_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Headrace("memory:")

    @app.task
    async def nothing() -> None: ...

    probe = WorkerProbe()
    probe.attach(Worker(app, Settings(maintenance=False)))
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "call_soon_threadsafe", lambda turned: turned())
    assert probe.live() == Answer(ok=True)
    assert probe.live() == Answer(ok=True)


async def test_only_what_was_asked_for_is_served(tmp_path: Path) -> None:
    port = free_port()
    with serving(WorkerProbe(), ("127.0.0.1", port), frozenset(("/live",))):
        assert await status(port, "/live") == 200
        for other in ("/ready", "/metrics", "/", "/live/"):
            assert await status(port, other) == 404
    assert await status(port, "/live") is None


def test_the_metrics_of_processes_are_joined() -> None:
    text = (
        "# HELP a_total How many.\n# TYPE a_total counter\n"
        'a_total{kind="x"} 3.0\n'
        "# HELP headrace_jobs Jobs by state.\n# TYPE headrace_jobs gauge\n"
        'headrace_jobs{state="dead"} 2.0\n'
    )
    other = "# HELP a_total How many.\n# TYPE a_total counter\n" + 'a_total{kind="x"} 4.0\n'
    _, body = merged("", {"0": text, "1": other})
    assert [line for line in body.decode().splitlines() if not line.startswith("#")] == [
        'a_total{kind="x",process="0"} 3.0',
        'a_total{kind="x",process="1"} 4.0',
        'headrace_jobs{state="dead"} 2.0',
    ]
