"""Several processes on one file: they share it without an error, and one that is killed loses nothing."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from headrace.model import State
from headrace.stores.base import EventQuery, Query
from headrace.stores.sqlite import SqliteStore
from tests.stores.sqlite.samples import NOW, complete, insert, new_job, request, rows

ROOT = Path(__file__).parents[3]

WRITER = textwrap.dedent(
    """
    import asyncio, sys
    from headrace.stores.sqlite import SqliteStore
    from tests.stores.sqlite.samples import insert, new_job

    async def main(path, prefix):
        store = await SqliteStore.open(path)
        number = 0

        async def write():
            nonlocal number
            while True:
                number += 1
                name = f"{prefix}-{number}"
                await insert(store, new_job(id=name, tags=("a", "b")), new_job(id=name + "-more"))
                print(name, flush=True)

        await asyncio.gather(*(write() for _ in range(8)))

    asyncio.run(main(*sys.argv[1:]))
    """
)

WORKER = textwrap.dedent(
    """
    import asyncio, sys
    from headrace.stores.sqlite import SqliteStore
    from tests.stores.sqlite.samples import complete, insert, new_job, request

    async def main(path, name, count):
        store = await SqliteStore.open(path)
        for _ in range(int(count)):
            await asyncio.gather(*(insert(store, new_job(queue=name)) for _ in range(5)))
        done = 0
        while jobs := await store.claim(request(7)):
            await complete(store, jobs)
            done += len(jobs)
        await store.close()
        print(done)

    asyncio.run(main(*sys.argv[1:]))
    """
)


async def start(program: str, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        *arguments,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_processes_that_write_at_once_meet_no_lock_error(path: Path) -> None:
    store = await SqliteStore.open(path)
    others = [await start(WORKER, str(path), name, "60") for name in ("one", "two")]
    done = 0
    for _ in range(60):
        await asyncio.gather(*(insert(store, new_job(queue="here")) for _ in range(5)))
        jobs = await store.claim(request(5))
        await complete(store, jobs)
        done += len(jobs)
    for other in others:
        output, errors = await other.communicate()
        assert other.returncode == 0, errors.decode()
        done += int(output)
    assert done == 900
    assert [tally.jobs for tally in await store.count(NOW)] == [300, 300, 300]
    events = await store.events(EventQuery(limit=10_000))
    assert [event.seq for event in events] == list(range(1, 2701))
    assert Counter(event.after for event in events) == {
        State.PENDING: 900,
        State.RUNNING: 900,
        State.COMPLETED: 900,
    }
    await store.close()


@pytest.mark.parametrize("seed", range(3))
async def test_what_was_acknowledged_survives_a_kill(path: Path, seed: int) -> None:
    process = await start(WRITER, str(path), "job")
    assert process.stdout is not None
    acknowledged = []
    for _ in range(random.Random(seed).randrange(100, 400)):
        line = await process.stdout.readline()
        acknowledged.append(line.decode().strip())
    os.kill(process.pid, signal.SIGKILL)
    rest, errors = await process.communicate()
    assert not errors
    acknowledged += rest.decode().split("\n")[:-1]

    store = await SqliteStore.open(path)
    jobs = await store.find(Query(limit=10_000))
    ids = {job.id for job in jobs}
    assert set(acknowledged) <= ids
    # Whole or not at all: each insertion holds two jobs, their events and their tags.
    assert {f"{name}-more" for name in ids if not name.endswith("-more")} <= ids
    events = await store.events(EventQuery(limit=10_000))
    assert [event.seq for event in events] == list(range(1, len(jobs) + 1))
    assert [event.job_id for event in events] == [job.id for job in jobs]
    assert sum(tally.jobs for tally in await store.count(NOW)) == len(jobs)
    assert len(await store.claim(request(10_000, tags=["a", "b"]))) == len(jobs) / 2
    await store.close()
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


async def test_another_process_is_heard_of_soon(path: Path) -> None:
    store = await SqliteStore.open(path)
    before = await store.tail()
    loop = asyncio.get_running_loop()
    process = await start(WRITER, str(path), "job")
    waited = loop.create_task(store.wait(before, 20))
    assert process.stdout is not None
    await process.stdout.readline()
    written = loop.time()
    await waited
    assert loop.time() - written < 2
    assert await store.events(EventQuery(after=before)) != []
    process.kill()
    await process.communicate()
    await store.close()
