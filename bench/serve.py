"""How much the HTTP server bears: submissions, event streams and waits at once.

python bench/serve.py                      # memory and SQLite
python bench/serve.py --url postgresql://… # another store
python bench/servers.py postgres bench/serve.py --from-environment HEADRACE_TEST_POSTGRES

The server runs in a process of its own; connections, streams and waits are those of this one.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import resource
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import uvicorn

from headrace.connect import connect
from headrace.server import Bounds, create_app
from headrace.tokens import Scope

BODY = msgspec.json.encode({"type": "t", "payload": {"to": "ada@example.org", "n": 1}})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", action="append", default=[])
    parser.add_argument("--from-environment", metavar="VARIABLE")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--waits", type=int, default=1000)
    parser.add_argument("--child", metavar="URL")
    given = parser.parse_args()
    if given.child:
        serve(given.child)
        return
    urls = (
        given.url or [os.environ[given.from_environment]] if given.from_environment else given.url
    )
    with tempfile.TemporaryDirectory() as folder:
        for url in urls or ["memory:", f"sqlite:///{Path(folder) / 'jobs.db'}"]:
            asyncio.run(measure(url, given))


def serve(url: str) -> None:
    """In the child: says where it is and its token, and serves until it is told to end."""

    async def run() -> None:
        manager = await connect(url)
        secret = (await manager.create_token("bench", list(Scope))).secret
        app = create_app(manager, bounds=Bounds(token_streams_max=10_000))
        config = uvicorn.Config(
            app,
            port=0,
            http="httptools",
            log_config=None,
            access_log=False,
            backlog=4096,
            timeout_graceful_shutdown=1,
            timeout_keep_alive=75,
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        print(port, secret, flush=True)
        await serving

    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415 - an extra

        uvloop.install()
    asyncio.run(run())


class Child:
    def __init__(self, process: asyncio.subprocess.Process, port: int, secret: str) -> None:
        self.process = process
        self.port = port
        self.secret = secret

    @property
    def cpu_seconds(self) -> float:
        fields = (
            Path(f"/proc/{self.process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        )
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory_mb(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text("utf-8").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def head(self, method: str, path: str, length: int = 0, more: str = "") -> bytes:
        return (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.secret}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {length}\r\n{more}\r\n"
        ).encode()

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)


@contextlib.asynccontextmanager
async def child(url: str) -> AsyncIterator[Child]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--child", url, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    port, secret = (await process.stdout.readline()).decode().split()
    try:
        yield Child(process, int(port), secret)
    finally:
        process.send_signal(signal.SIGINT)
        await process.wait()


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head[9:12])
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    return status, await reader.readexactly(length)


async def measure(url: str, given: argparse.Namespace) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
    name = url.partition(":")[0]
    async with child(url) as server:
        await submissions(name, server, given.connections, given.jobs)
        await streams_and_waits(name, server, given.streams, given.waits)


async def submissions(name: str, server: Child, connections: int, jobs: int) -> None:
    """So many connections, each with one request after the other."""
    request = server.head("POST", "/api/v1/jobs", len(BODY)) + BODY
    times: list[float] = []
    left = jobs

    async def submit() -> None:
        nonlocal left
        reader, writer = await server.open()
        while left > 0:
            left -= 1
            start = time.perf_counter()
            writer.write(request)
            status, body = await read_answer(reader)
            if status != 201:
                raise RuntimeError(body.decode())
            times.append(time.perf_counter() - start)
        writer.close()

    cpu, start = server.cpu_seconds, time.perf_counter()
    await asyncio.gather(*(submit() for _ in range(connections)))
    seconds, cpu = time.perf_counter() - start, server.cpu_seconds - cpu
    p99 = statistics.quantiles(times, n=100)[98]
    print(
        f"{name:<11} submit, {connections} connections: {len(times) / seconds:,.0f} requests/s, "
        f"p50 {statistics.median(times) * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms, "
        f"server CPU {cpu / len(times) * 1e6:.0f} µs a request",
        flush=True,
    )


async def streams_and_waits(  # noqa: PLR0915 - a scenario, read from top to bottom
    name: str, server: Child, streams: int, waits: int
) -> None:
    """Streams of everything and waits for one job each, while a hundred jobs a second come and go."""
    before = server.memory_mb
    seen = [0] * streams
    lag: list[float] = []
    sent: dict[bytes, float] = {}
    opened = asyncio.Semaphore(64)

    async def follow(number: int) -> None:
        async with opened:
            reader, writer = await server.open()
            writer.write(
                server.head(
                    "GET", "/api/v1/events?kind=enqueued", 0, "Accept: text/event-stream\r\n"
                )
            )
            await reader.readuntil(b"retry:")
        while line := await reader.readline():
            if line.startswith(b"data:"):
                seen[number] += 1
                if number == 0:
                    job = line.partition(b'"job_id":"')[2].partition(b'"')[0]
                    lag.append(time.perf_counter() - sent[job])

    woken: list[float] = []
    ended: dict[int, float] = {}

    async def wait(number: int) -> None:
        async with opened:
            reader, writer = await server.open()
            writer.write(server.head("GET", f"/api/v1/jobs/w{number}/wait?seconds=120"))
            await writer.drain()
        status, answer = await read_answer(reader)
        assert status == 200, answer
        woken.append(time.perf_counter() - ended[number])
        writer.close()

    reader, writer = await server.open()

    async def ask(method: str, path: str, body: bytes = b"") -> None:
        writer.write(server.head(method, path, len(body)) + body)
        status, answer = await read_answer(reader)
        assert status < 300, answer

    for first in range(0, waits, 500):
        jobs = [{"type": "w", "id": f"w{n}"} for n in range(first, min(first + 500, waits))]
        await ask("POST", "/api/v1/jobs/batch", msgspec.json.encode({"jobs": jobs}))
    following = [asyncio.create_task(follow(n)) for n in range(streams)]
    waiting = [asyncio.create_task(wait(n)) for n in range(waits)]
    await asyncio.sleep(5)
    idle, idle_start = server.cpu_seconds, time.perf_counter()
    await asyncio.sleep(5)
    idle_share = (server.cpu_seconds - idle) / (time.perf_counter() - idle_start)
    cpu, start = server.cpu_seconds, time.perf_counter()
    count = 1000
    for number in range(count):
        job = f"s{number}"
        sent[job.encode()] = time.perf_counter()
        await ask("POST", "/api/v1/jobs", msgspec.json.encode({"type": "t", "id": job}))
        await asyncio.sleep(max(0.0, start + (number + 1) / 100 - time.perf_counter()))
    busy_share = (server.cpu_seconds - cpu) / (time.perf_counter() - start)
    await asyncio.sleep(2)
    missed = sum(count - one for one in seen)
    memory = server.memory_mb
    for number in range(waits):
        ended[number] = time.perf_counter()
        await ask("POST", f"/api/v1/jobs/w{number}/cancel", b"{}")
    await asyncio.wait_for(asyncio.gather(*waiting), 60)
    for task in following:
        task.cancel()
    await asyncio.wait(following)
    print(
        f"{name:<11} {streams} streams and {waits} waits: idle {idle_share:.0%} of a core, at 100 events/s "
        f"{busy_share:.0%}; {before:.0f} MB before, {memory:.0f} MB with them; {missed} events missed; "
        f"seen after p50 {statistics.median(lag) * 1000:.0f} ms, p99 "
        f"{statistics.quantiles(lag, n=100)[98] * 1000:.0f} ms; waits woken after p50 "
        f"{statistics.median(woken) * 1000:.0f} ms, "
        f"p99 {statistics.quantiles(woken, n=100)[98] * 1000:.0f} ms",
        flush=True,
    )


if __name__ == "__main__":
    main()
