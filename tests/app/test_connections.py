"""Connections belong to an event loop, and end with it."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headrace import Headrace

CALLS = 8


def held() -> tuple[int, int]:
    """Open files and sockets of this process, and its threads."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


@pytest.mark.skipif(sys.platform != "linux", reason="counts files as Linux shows them")
def test_a_loop_for_each_call_leaks_nothing(store_url: str) -> None:
    app = Headrace(store_url)

    @app.task
    async def count(n: int) -> int:
        return n

    for n in range(2):
        asyncio.run(count.submit(n))
    files, threads = held()
    for n in range(CALLS):
        asyncio.run(count.submit(n))
    files_after, threads_after = held()
    assert files_after <= files
    assert threads_after <= threads
    assert asyncio.run(submitted(app)) == CALLS + 2


BY_HAND = """
import asyncio, gc, sys, threading
from pathlib import Path
from headrace import Headrace

app = Headrace(sys.argv[1])

@app.task
async def count(n: int) -> int:
    return n

def call(n):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(count.submit(n))
    loop.close()

def held():
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

for n in range(2):
    call(n)
before = held()
for n in range(8):
    call(n)
print(*before, *held())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts files as Linux shows them")
def test_a_loop_that_is_closed_by_hand_leaks_nothing_either(store_url: str) -> None:
    """It says no goodbye to a server, so warnings of unclosed sockets are its own."""
    command = [sys.executable, "-W", "ignore", "-c", BY_HAND, store_url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    files, threads, files_after, threads_after = map(int, done.stdout.split())
    assert files_after <= files
    assert threads_after <= threads


async def submitted(app: Headrace) -> int:
    async with app:
        return (await (await app.manager()).stats()).total


async def test_close_gives_back_the_connections_of_the_running_loop_alone(store_url: str) -> None:
    app = Headrace(store_url)
    manager = await app.manager()
    other: list[object] = []

    def elsewhere() -> None:
        async def work() -> None:
            other.append(await app.manager())
            await app.close()

        asyncio.run(work())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    await asyncio.to_thread(thread.join)
    assert other[0] is not manager
    assert (await manager.stats()).total == 0  # still open
    await app.close()
    again = await app.manager()
    assert again is not manager
    await app.close()


async def test_many_who_ask_at_once_get_the_same_manager(store_url: str) -> None:
    async with Headrace(store_url) as app:
        found = await asyncio.gather(*(app.manager() for _ in range(20)))
    assert len(set(map(id, found))) == 1
