"""What is measured of one system, once. Where a job did not run exactly once, the figure does not count."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.race.entrants import Entrant, Measure
from bench.race.ledger import Ledger
from bench.race.processes import Driver, Processes, Workers
from bench.race.servers import Server

DRAIN_SECONDS_MAX = 60.0
IDLE_SECONDS_MAX = 10.0
WARM_UP_SECONDS = 2.0
_LOOK_SECONDS = 0.005
_GAP_SECONDS = 0.05
"""Between two samples of the latency: the worker is idle again."""


@dataclass(frozen=True)
class Sizes:
    each: int
    bulk: int
    drain_share: float
    """Of the jobs that the entrant drains in a full race."""
    idle: int


@dataclass(frozen=True)
class Figure:
    """Jobs a second; of the latency milliseconds."""

    value: float
    p99: float | None = None
    worker_us: float | None = None
    """Processor time a job, of all workers."""
    server_us: float | None = None


class NotExactlyOnce(Exception):
    """A job did not run, or ran twice, or its worker did not come up."""


@dataclass(frozen=True)
class Stand:
    """One system, ready to be measured."""

    entrant: Entrant
    server: Server
    processes: Processes
    driver: Driver
    ledger: Ledger
    sizes: Sizes


def measured(stand: Stand, measure: Measure) -> Figure:
    stand.driver.ask("reset")
    stand.ledger.reset()
    match measure:
        case Measure.EACH:
            return _submitted(stand, "each", stand.sizes.each)
        case Measure.BULK:
            return _submitted(stand, "bulk", stand.sizes.bulk)
        case Measure.DRAIN:
            return _drained(stand, 1)
        case Measure.DRAIN_BY_TWO:
            return _drained(stand, 2)
        case Measure.IDLE:
            return _idle(stand)


def _submitted(stand: Stand, how: str, jobs: int) -> Figure:
    seconds = stand.driver.ask(how, jobs=jobs)["seconds"]
    if (left := stand.driver.left()) != jobs:
        raise NotExactlyOnce(f"{left} of {jobs} jobs were stored")
    return Figure(jobs / seconds)


def _drained(stand: Stand, processes: int) -> Figure:
    """From the moment that the first jobs have run, to that in which the store knows all to be done.

    What ran before is not counted: a worker starts up once, and drains all day.
    """
    jobs = max(100, int(stand.entrant.jobs * stand.sizes.drain_share))
    stand.driver.ask("bulk", jobs=jobs)
    ledger = stand.ledger
    with stand.processes.workers(processes) as workers:
        begun = jobs // 20  # every worker has had some of the first twentieth, or will have
        _wait(workers, DRAIN_SECONDS_MAX, lambda: jobs - ledger.counts(jobs).count(0) >= begun)
        start, cpu, server_cpu = time.monotonic(), workers.cpu_seconds(), stand.server.cpu_seconds()
        open_jobs = ledger.counts(jobs).count(0)
        _wait(workers, DRAIN_SECONDS_MAX, lambda: 0 not in ledger.counts(jobs))
        _wait(workers, DRAIN_SECONDS_MAX, lambda: stand.driver.left() == 0)
        seconds = time.monotonic() - start
        cpu, server_cpu = workers.cpu_seconds() - cpu, stand.server.cpu_seconds() - server_cpu
    if ledger.counts(jobs) != b"\1" * jobs:
        raise NotExactlyOnce("a job ran more than once")
    each = 1e6 / max(open_jobs, 1)
    return Figure(
        open_jobs / seconds,
        worker_us=cpu * each,
        server_us=None if stand.server.process is None else server_cpu * each,
    )


def _idle(stand: Stand) -> Figure:
    """From before a submission to the start of its handler, with one idle worker."""
    waits: list[float] = []
    with stand.processes.workers(1) as workers:
        stand.driver.ask("each", jobs=1)
        _wait(workers, IDLE_SECONDS_MAX, lambda: stand.ledger.ran(0) is not None)
        time.sleep(WARM_UP_SECONDS)
        for job in range(1, stand.sizes.idle + 1):
            start = stand.driver.ask("each", first=job, jobs=1)["start"]
            while (ran := stand.ledger.ran(job)) is None:
                if time.monotonic() - start > IDLE_SECONDS_MAX or not workers.are_up:
                    raise NotExactlyOnce(f"job {job} did not start")
                time.sleep(0.0002)
            waits.append(1000 * (ran - start))
            time.sleep(_GAP_SECONDS)
    waits.sort()
    return Figure(waits[len(waits) // 2], p99=waits[math.ceil(0.99 * len(waits)) - 1])


def _wait(workers: Workers, seconds: float, until: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            raise NotExactlyOnce(f"not within {seconds:g} s")
        if not workers.are_up:
            raise NotExactlyOnce("a worker ended")
        time.sleep(_LOOK_SECONDS)
