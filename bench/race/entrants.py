"""Who races: each system, on which store, at which settings, and what its environment holds."""

from __future__ import annotations

import enum
import sys
from dataclasses import dataclass

UVLOOP = "uvloop==0.23.0"
REDIS = "redis[hiredis]==8.1.0"
PSYCOPG = "psycopg[binary,pool]==3.3.8"


class Store(enum.StrEnum):
    POSTGRES = "PostgreSQL"
    REDIS = "Redis"
    SQLITE = "SQLite"


class Measure(enum.StrEnum):
    EACH = "one by one"
    BULK = "bulk of 1,000"
    DRAIN = "drain, 1 process"
    DRAIN_BY_TWO = "drain, 2 processes"
    IDLE = "idle to start"


EVERYTHING = frozenset(Measure)
RAW = EVERYTHING - {Measure.IDLE}
"""A raw loop asks without end: it is never idle."""


@dataclass(frozen=True)
class Entrant:
    name: str
    store: Store
    module: str
    """Of `systems`."""
    settings: str
    worker: tuple[str, ...] = ()
    """The command of a worker, of a program in the environment. (): the module's own loop."""
    packages: tuple[str, ...] | None = None
    """None: the environment that this runs in."""
    jobs: int = 10_000
    """How many it drains in one run: a second or two of its time."""
    measures: frozenset[Measure] = EVERYTHING
    is_extra: bool = False
    """Only with `--all`."""

    @property
    def key(self) -> str:
        return f"{self.store.lower()}-{self.module}"

    @property
    def is_raw(self) -> bool:
        return self.module.startswith("raw_")

    @property
    def is_ours(self) -> bool:
        return self.module == "with_headrace"


def _headrace(store: Store, jobs: int) -> Entrant:
    return Entrant(
        "Headrace",
        store,
        "with_headrace",
        "concurrency 200",
        worker=(
            *(sys.executable, "-m", "headrace.cli", "worker"),
            *("bench.race.systems.with_headrace:app", "--concurrency", "200"),
            *("--log-level", "error"),
        ),
        jobs=jobs,
    )


_P, _R, _S = Store.POSTGRES, Store.REDIS, Store.SQLITE
_MODULE = "bench.race.systems"

ENTRANTS = (
    _headrace(_P, 30_000),
    Entrant(
        *("PgQueuer 1.6", _P, "with_pgqueuer", "asyncpg, batches of 100"),
        packages=("pgqueuer[asyncpg]==1.6.0", UVLOOP),
        jobs=30_000,
    ),
    Entrant(
        *("Procrastinate 3.10", _P, "with_procrastinate", "20 at once"),
        packages=("procrastinate==3.10.0", PSYCOPG, UVLOOP),
        jobs=1_500,
    ),
    Entrant(
        *("raw loop", _P, "raw_postgres", "batches of 100"),
        jobs=60_000,
        measures=RAW,
    ),
    _headrace(_R, 40_000),
    Entrant(
        *("Dramatiq 2.2", _R, "with_dramatiq", "16 threads"),
        worker=("dramatiq", f"{_MODULE}.with_dramatiq", "-p", "1", "-t", "16", "--skip-logging"),
        packages=("dramatiq[redis]==2.2.1", REDIS),
        measures=EVERYTHING - {Measure.BULK},
    ),
    Entrant(
        *("TaskIQ 0.13", _R, "with_taskiq", "stream, 100 at once"),
        worker=(
            *("taskiq", "worker", f"{_MODULE}.with_taskiq:broker", "--workers", "1"),
            *("--max-async-tasks", "100", "--max-prefetch", "100"),
            *("--log-level", "ERROR", "--no-configure-logging"),
        ),
        packages=("taskiq==0.13.0", "taskiq-redis==1.2.4", "orjson", "hiredis", UVLOOP),
        measures=EVERYTHING - {Measure.BULK},
    ),
    Entrant(
        *("Celery 5.7", _R, "with_celery", "solo, 64 ahead"),
        worker=(
            *("celery", "-A", f"{_MODULE}.with_celery", "worker", "-l", "WARNING", "--pool=solo"),
            *(
                "--without-gossip",
                "--without-mingle",
                "--without-heartbeat",
                "-n",
                "w{number}@race",
            ),
        ),
        packages=("celery==5.7.0", "packaging", REDIS),
        jobs=4_000,
        measures=EVERYTHING - {Measure.BULK},
        is_extra=True,
    ),
    Entrant(
        *("RQ 2.12", _R, "with_rq", "SimpleWorker"),
        worker=("rq", "worker", "--url", "{url}", "--quiet", "-w", "rq.worker.SimpleWorker"),
        packages=("rq==2.12.0", REDIS),
        jobs=800,
        is_extra=True,
    ),
    Entrant(
        *("raw loop", _R, "raw_redis", "batches of 100"),
        jobs=150_000,
        measures=RAW,
    ),
    _headrace(_S, 30_000),
    Entrant(
        *("Huey 3.5", _S, "with_huey", "1 thread, fsync"),
        worker=(
            *("huey_consumer", f"{_MODULE}.with_huey.huey", "-k", "thread", "-w", "1"),
            *("-q", "-n", "-d", "0.01", "-m", "0.01", "-b", "1"),
        ),
        packages=("huey==3.5.4",),
        measures=EVERYTHING - {Measure.BULK},
    ),
    Entrant(
        *("persist-queue 1.1", _S, "with_persist_queue", "acknowledged, a loop"),
        packages=("persist-queue==1.1.0",),
        jobs=3_000,
        # Two processes on one of its queues would be given the same jobs.
        measures=EVERYTHING - {Measure.BULK, Measure.DRAIN_BY_TWO},
    ),
    Entrant(
        *("raw loop", _S, "raw_sqlite", "batches of 100, fsync"),
        jobs=100_000,
        measures=RAW,
    ),
)
