"""A storm of faults on real processes, and the checker afterwards.

python -m tests.faults.storm --jobs 5000 --workers 4 --kills 40 --stops 20 --seed 1
python bench/servers.py postgres tests/faults/storm.py
python bench/servers.py redis tests/faults/storm.py

Clients submit jobs of every kind and are killed; workers run them and are killed or stopped past their
lease; running jobs are cancelled. Then the faults stop, all must end, and what clients saw, the event log
and the rows are held against the invariants. The exit code is 1 if one is broken.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # when it is run as a script

from headrace import connect
from headrace.manager.upkeep import SWEEP_SECONDS
from headrace.model import EventKind
from headrace.testing.checker import check, collect, read_client_logs
from tests.faults.app import LEASE_SECONDS, LOG_VARIABLE, POLICY
from tests.faults.fleet import Fleet
from tests.faults.havoc import Faults, cancel_running, meddle
from tests.faults.observer import Observer
from tests.faults.plan import SUBMITTERS, misfits
from tests.faults.processes import Processes
from tests.faults.report import Report, Storm

SILENCE_SECONDS = LEASE_SECONDS + 2 * (SWEEP_SECONDS + 1.0) + 10.0
"""Liveness: a lease, two rounds of maintenance, and what a busy machine takes to start a process."""
PROGRESS_SECONDS = 5.0


async def blow(storm: Storm, folder: Path, say: Callable[[str], None] = lambda _: None) -> Report:
    """The whole storm. `folder` takes the clients' logs and what the processes say."""
    try:
        return await _blow(storm, folder, say)
    except BaseException as error:
        error.add_note(f"{storm}")
        raise


async def _blow(storm: Storm, folder: Path, say: Callable[[str], None]) -> Report:
    dice = random.Random(storm.seed)
    began = time.monotonic()
    async with (
        Processes(folder, {LOG_VARIABLE: str(folder)}) as processes,
        await connect(storm.url, policies=POLICY) as manager,
    ):
        observer = Observer(manager, random.Random(storm.seed))
        fleet = Fleet(processes, storm.url, storm.app, storm.workers)
        faults = Faults(
            fleet, observer, jobs=storm.jobs, kills=storm.kills, stops=storm.stops, dice=dice
        )
        async with asyncio.TaskGroup() as group:
            workers = group.create_task(fleet.run())
            around = [
                group.create_task(observer.follow()),
                group.create_task(cancel_running(manager, observer, faults.done, dice)),
                group.create_task(meddle(manager, observer, faults.done, dice)),
                group.create_task(_tell(observer, faults, storm, say)),
            ]
            clients = [
                group.create_task(_submit(processes, storm, client)) for client in range(SUBMITTERS)
            ]
            await _while_alive(observer, *clients, group.create_task(faults.run()))
            over = time.monotonic()
            await _while_alive(observer, group.create_task(_all_ended(observer)))
            drained = time.monotonic()
            fleet.end()
            await workers
            for task in around:
                task.cancel()
        say("the storm is over: checking")
        history = await collect(
            manager,
            client=read_client_logs(folder),
            readings=[observer.reading],
            dice=dice,
            keys_released=POLICY.key_released_when_terminal,
        )
        left = await processes.leftovers()
    return Report(
        storm=storm,
        seconds=drained - began,
        drain_seconds=drained - over,
        longest_silence=observer.longest_silence,
        havoc=faults.done,
        submitters_killed=sum(client.result() for client in clients),
        refused=processes.count_lines(" was refused: "),
        history=history,
        violations=[
            *(str(one) for one in check(history)),
            *misfits(history.jobs.values()),
            *fleet.defects,
            *processes.complaints(),
            *(f"process {pid} was left behind" for pid in left),
        ],
    )


async def _submit(processes: Processes, storm: Storm, client: int) -> int:
    """One client, started again until it is through. How often it was killed."""
    lives = 0
    name = f"submitter-{client}"
    while True:
        process = await processes.start(
            name,
            "tests.faults.submitter",
            *("--url", storm.url, "--client", str(client)),
            *("--jobs", str(storm.jobs), "--seed", str(storm.seed)),
        )
        code = await process.wait()
        if code == 0:
            return lives
        if code != -signal.SIGKILL:
            raise RuntimeError(f"{name} ended with {code}: {processes.said(name)[-2000:]}")
        lives += 1


async def _all_ended(observer: Observer) -> None:
    while observer.live:  # noqa: ASYNC110 - what it waits for is in a store
        await asyncio.sleep(0.05)


async def _while_alive(observer: Observer, *work: asyncio.Task[Any]) -> None:
    """Until this work is done; TimeoutError when nothing happens any more."""
    left = set(work)
    while left:
        done, left = await asyncio.wait(left, timeout=0.1)
        for task in done:
            task.result()
        if time.monotonic() - observer.changed_at > SILENCE_SECONDS:
            waiting = Counter(event.after.value for event in observer.live.values())
            raise TimeoutError(f"nothing happened for {SILENCE_SECONDS} s; left: {dict(waiting)}")


async def _tell(
    observer: Observer, faults: Faults, storm: Storm, say: Callable[[str], None]
) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        done = faults.done
        say(
            f"{time.monotonic() - began:4.0f} s: {observer.stored:,} jobs stored ({storm.jobs:,} planned), "
            f"{observer.ended:,} ended, {done.kills} kills, {done.stops} stops, "
            f"{observer.kinds[EventKind.LOST]} leases lost"
        )


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--url", help="an empty store; default: a SQLite file of its own")
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--stops", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    chosen = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="headrace-storm-"))
    url = (chosen.url or f"sqlite:///{folder}/jobs.db").replace("{n}", "1")
    storm = Storm(**{**vars(chosen), "url": url})
    _print(f"{url.partition(':')[0]}, seed {storm.seed}")
    report = asyncio.run(blow(storm, folder, _print))
    _print(str(report))
    if report.violations:
        sys.exit(f"what the processes said is in {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
