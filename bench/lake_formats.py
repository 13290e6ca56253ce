"""What a batch of the pipeline costs in each form that the lake could have, while a reader reads.

    python bench/lake_formats.py                              # 20 batches of 50,000 events
    python bench/lake_formats.py --batches 60 --events 5000  # small batches, many files

Each batch appends its events to one table and replaces the open jobs that it touches in another, as bronze
and silver do. The work is made up before the clock starts, and is the same for all:

- delta: Delta tables, by the pipeline's own code
- linked: a folder per version and a pointer file, renamed; files that stay are hard links
- copied: the same, but files that stay are copies, as where there are no links
- in place: files are written into the table's folder, and those they replace are deleted

All write the same Parquet files and flush them to the disk, with the folders that name them. In every batch
each form has its turn, so that whatever else the machine does hits all alike. A process of its own reads the
jobs throughout. A read has failed if it raised, did not find each job of some version once, or went back to
an older version. The first batch warms everything up and is not counted; nothing is compacted or vacuumed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pyarrow.parquet as pq
from deltalake import DeltaTable

from headrace.spark import folding
from headrace.spark.lake import bronze, silver
from headrace.spark.lake.delta import Folder, without
from headrace.spark.schemas import EVENTS, TIME

START = datetime(2026, 11, 10, tzinfo=UTC)
DAYS = 4
EVENTS_PER_JOB = 3
OPEN_PART = 0.1
"""Of a batch: how much of it a job takes to go on, in the middle."""
MARK = "batch"


# --- the work ------------------------------------------------------------------------------------


class Work(NamedTuple):
    """One batch."""

    events: pa.Table
    gone: pa.Array
    """`last_seq` of the rows of jobs that are replaced."""
    come: pa.Table
    """Rows of jobs: new ones, and those in place of the ones that go."""


def works(rows: pa.Table, events: int) -> Iterator[Work]:
    """These rows in batches of so many events."""
    open_jobs = silver.JOBS_SCHEMA.empty_table()
    for number in range(len(rows) // events):
        fresh = rows.slice(number * events, events)
        known = pc.is_in(open_jobs["job_id"], pc.unique(fresh["job_id"]))
        old, left = open_jobs.filter(known), open_jobs.filter(pc.invert(known))
        before = folding.events_of(old)
        both = pa.concat_tables([before, fresh.select(before.schema.names)])
        come = silver.job_rows(folding.fold(both).jobs)
        open_jobs = pa.concat_tables([left, come.filter(pc.invert(come["ended"]))])
        day = fresh["at"].cast(pa.date32())
        batch = pa.array(np.full(events, number))
        told = fresh.append_column("on", day).append_column("batch", batch).cast(bronze.SCHEMA)
        yield Work(told, old["last_seq"].combine_chunks(), come)


def made(count: int, batch: int) -> pa.Table:
    """So many events, in the order in which they happened.

    Jobs come evenly over some days, are leased after a while and complete after another.
    """
    dice = np.random.default_rng(7)
    jobs = -(-count // EVENTS_PER_JOB)
    spacing_us = DAYS * 86_400_000_000 / jobs
    pause_us = OPEN_PART * batch / EVENTS_PER_JOB * spacing_us
    waits, runs = (1 + dice.exponential(pause_us, jobs).astype(np.int64) for _ in range(2))
    born = int(START.timestamp() * 1e6) + (np.arange(jobs) * spacing_us).astype(np.int64)
    job = np.tile(np.arange(jobs), EVENTS_PER_JOB)
    step = np.repeat(np.arange(EVENTS_PER_JOB), jobs)
    at = np.concatenate([born, born + waits, born + waits + runs])
    # A job's steps stay in order where their times are equal.
    order = np.lexsort((step, at))[:count]
    job, step, at = job[order], step[order], at[order]
    number = np.arange(1, count + 1)
    columns: dict[str, Any] = {
        "seq": number,
        "cursor": pa.array(number).cast(pa.string()),
        "at": pa.array(at, pa.int64()).cast(TIME),
        "tenant": _repeated("default", count),
        "queue": _chosen(["mail", "images", "exports"], job % 3),
        "type": _chosen(["send", "resize", "export"], job % 3),
        "job_id": [f"job-{one:09d}" for one in job],
        "kind": _chosen(["enqueued", "leased", "completed"], step),
        "before": _chosen([None, "pending", "running"], step),
        "after": _chosen(["pending", "running", "completed"], step),
        "version": step + 1,
        "attempt": np.minimum(step, 1),
        "failures": np.zeros(count),
        "losses": np.zeros(count),
        "priority": np.full(count, 2),
        "run_at": pa.array(born[job], pa.int64()).cast(TIME),
        "worker": pa.array(
            [None if s == 0 else f"w{j % 40}" for s, j in zip(step, job, strict=True)]
        ),
        "wait_us": pa.array(waits[job], mask=step != 1),
        "run_us": pa.array(runs[job], mask=step != 2),
        "payload_bytes": pa.array(100 + job % 400, mask=step != 0),
        "result_bytes": pa.array(20 + job % 50, mask=step != 2),
        "detail": _chosen(['{"tags":["shop"],"max_attempts":3}', None, None], step),
    }
    return pa.table(
        [_column(columns.get(field.name), field.type, count) for field in EVENTS], schema=EVENTS
    )


def _column(values: Any, kind: pa.DataType, count: int) -> pa.Array:
    if values is None:
        return pa.nulls(count, kind)
    return (values if isinstance(values, pa.Array) else pa.array(values)).cast(kind)


def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text), count)


def _chosen(words: Sequence[str | None], which: Any) -> pa.Array:
    return pa.array(words, pa.string()).take(pa.array(which))


# --- the forms -----------------------------------------------------------------------------------


class Form(Protocol):
    """A way to keep the two tables."""

    def take(self, work: Work, number: int) -> None:
        """When it returns, the batch is there, and stays there after a power cut."""
        ...

    @staticmethod
    def read(folder: Path, columns: Sequence[str]) -> pa.Table:
        """The jobs, as somebody would read them who knows nothing of us."""
        ...


def tables_in(folder: Path) -> tuple[Folder, Folder]:
    """Where the events and the jobs lie; what is written there is the same in every form."""
    return (
        Folder(folder / "events", bronze.SCHEMA, ["on"]),
        Folder(folder / "jobs", silver.JOBS_SCHEMA, ["created_on", "ended"]),
    )


class Delta:
    def __init__(self, folder: Path) -> None:
        self._events, self._jobs = tables_in(folder)
        self._events.prepare()
        self._jobs.prepare()

    def take(self, work: Work, number: int) -> None:
        self._events.commit(
            self._events.snapshot(), self._events.write(work.events), marks={MARK: number}
        )
        held = self._jobs.snapshot()
        open_files = [file for file in held.files if not file.partition["ended"]]
        gone, kept = without(held, "last_seq", work.gone, open_files)
        rows = pa.concat_tables([kept, work.come])
        self._jobs.commit(held, self._jobs.write(rows), gone, marks={MARK: number})

    @staticmethod
    def read(folder: Path, columns: Sequence[str]) -> pa.Table:
        return DeltaTable(str(folder / "jobs")).to_pyarrow_table(columns=list(columns))


class Linked:
    """Every version of a table is a folder; a pointer file says which one holds."""

    def __init__(self, folder: Path) -> None:
        self._events, self._jobs = tables_in(folder)
        for table in (self._events, self._jobs):
            (table.path / "v0").mkdir(parents=True)
            self._point(table.path, 0, -1)

    def take(self, work: Work, number: int) -> None:
        self._change(self._events, (), work.events, number)
        held = self._jobs.path / _pointed(self._jobs.path)
        gone, kept = _without(held, work.gone)
        self._change(self._jobs, gone, pa.concat_tables([kept, work.come]), number)

    def _change(self, table: Folder, gone: Sequence[Path], rows: pa.Table, number: int) -> None:
        old, new = (table.path / f"v{version}" for version in (number, number + 1))
        leaving = set(gone)
        for file in sorted(one for one in old.rglob("*.parquet") if one not in leaving):
            place = new / file.relative_to(old)
            place.parent.mkdir(parents=True, exist_ok=True)
            self._keep(file, place)
        Folder(new, table.schema, table.partition_by).write(rows)
        _flush_all(new)
        self._point(table.path, number + 1, number)

    def _keep(self, file: Path, place: Path) -> None:
        place.hardlink_to(file)

    def _point(self, table: Path, version: int, mark: int) -> None:
        aside = table / ".current.json"
        with aside.open("w") as file:
            json.dump({"version": f"v{version}", "marks": {MARK: mark}}, file)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(table / "current.json")
        _flush(table)

    @staticmethod
    def read(folder: Path, columns: Sequence[str]) -> pa.Table:
        return _read(folder / "jobs" / _pointed(folder / "jobs"), columns)


class Copied(Linked):
    def _keep(self, file: Path, place: Path) -> None:
        with file.open("rb") as source, place.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            os.fsync(target.fileno())


class InPlace:
    """What not to do: the control that shows that the reader would notice."""

    def __init__(self, folder: Path) -> None:
        self._events, self._jobs = tables_in(folder)
        for table in (self._events, self._jobs):
            table.path.mkdir(parents=True)

    def take(self, work: Work, number: int) -> None:  # noqa: ARG002 - it keeps no mark
        self._events.write(work.events)
        _flush_all(self._events.path)
        gone, kept = _without(self._jobs.path, work.gone)
        self._jobs.write(pa.concat_tables([kept, work.come]))
        for file in gone:
            file.unlink()
        _flush_all(self._jobs.path)

    @staticmethod
    def read(folder: Path, columns: Sequence[str]) -> pa.Table:
        return _read(folder / "jobs", columns)


FORMS: Mapping[str, type[Delta | Linked | InPlace]] = {
    "delta": Delta,
    "linked": Linked,
    "copied": Copied,
    "in place": InPlace,
}


def _pointed(table: Path) -> str:
    version: str = json.loads((table / "current.json").read_bytes())["version"]
    return version


def _read(folder: Path, columns: Sequence[str]) -> pa.Table:
    dataset = pds.dataset(folder, schema=silver.JOBS_SCHEMA, format="parquet", partitioning="hive")
    return dataset.to_table(columns=list(columns))


def _without(folder: Path, values: pa.Array) -> tuple[list[Path], pa.Table]:
    """The files of open jobs that hold rows with one of these `last_seq`, and their other rows."""
    gone: list[Path] = []
    kept = [silver.JOBS_SCHEMA.empty_table()]
    for file in sorted(folder.glob("*/ended=false/*.parquet")):
        seqs = pq.read_table(file, columns=["last_seq"], partitioning=None)["last_seq"]
        if not pc.any(pc.is_in(seqs, values)).as_py():
            continue
        gone.append(file)
        dataset = pds.dataset(
            file,
            schema=silver.JOBS_SCHEMA,
            format="parquet",
            partitioning="hive",
            partition_base_dir=str(folder),
        )
        rows = dataset.to_table()
        kept.append(rows.filter(pc.invert(pc.is_in(rows["last_seq"], values))))
    return gone, pa.concat_tables(kept)


def _flush_all(folder: Path) -> None:
    for one in (folder, *(below for below in folder.rglob("*") if below.is_dir())):
        _flush(one)


def _flush(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


# --- the reader ----------------------------------------------------------------------------------


class Reads(NamedTuple):
    seconds: list[float]
    failures: list[str]


class Reader:
    """A process that reads the jobs over and over while it is let."""

    def __init__(self, form: str, folder: Path, counts: set[int]) -> None:
        context = multiprocessing.get_context("spawn")
        self._form = form
        self._folder = folder
        self._counts = counts
        """Of the jobs in each version."""
        self._seen = 0
        self._ready, self._go, self._end = (context.Event() for _ in range(3))
        self._busy = context.Lock()
        self._told: Any = context.Queue()

    def start(self) -> None:
        process = multiprocessing.get_context("spawn").Process(target=self.run, daemon=True)
        process.start()
        self._ready.wait()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        self._go.set()
        yield
        self._go.clear()
        with self._busy:
            pass  # its last read has ended: it takes nothing from whoever is measured next

    def end(self) -> Reads:
        self._end.set()
        reads: Reads = self._told.get()
        return reads

    def run(self) -> None:
        reads = Reads([], [])
        self._problem()
        self._ready.set()
        while not self._end.is_set():
            self._go.wait(0.05)
            with self._busy:
                if not self._go.is_set():
                    continue
                start = time.perf_counter()
                problem = self._problem()
                reads.seconds.append(time.perf_counter() - start)
            if problem:
                reads.failures.append(problem)
        self._told.put(reads)

    def _problem(self) -> str | None:
        try:
            jobs = FORMS[self._form].read(self._folder, ["job_id", "state"])
        except Exception as error:  # noqa: BLE001 - whatever a reader meets is what is counted
            return f"{type(error).__name__}: {error}"
        distinct = len(pc.unique(jobs["job_id"]))
        if distinct != jobs.num_rows:
            return f"{jobs.num_rows - distinct} jobs twice"
        if distinct not in self._counts or distinct < self._seen:
            return f"{distinct} jobs, as in no version, or in one before that seen last"
        self._seen = distinct
        return None


# --- measuring -----------------------------------------------------------------------------------


class Meter:
    """The bytes that came into a folder, counted by its files: a link brings none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: set[tuple[int, int]] = set()
        self.fresh()

    def fresh(self) -> int:
        total = 0
        for file in self._folder.rglob("*"):
            facts = file.lstat()
            known_by = (facts.st_ino, facts.st_mtime_ns)
            if file.is_file() and known_by not in self._known:
                self._known.add(known_by)
                total += facts.st_size
        return total


def measure(folder: Path, batches: int, events: int) -> None:
    rows = made(batches * events, events)
    born = pc.cumulative_sum(pc.equal(rows["kind"], "enqueued").cast(pa.int64())).to_numpy()
    counts = set(born[events - 1 :: events].tolist())
    forms: dict[str, Form] = {}
    for name, kind in FORMS.items():
        (folder / name).mkdir()
        forms[name] = kind(folder / name)
    meters = {name: Meter(folder / name) for name in forms}
    readers = {name: Reader(name, folder / name, counts) for name in forms}
    seconds: dict[str, list[float]] = {name: [] for name in forms}
    written: dict[str, list[int]] = {name: [] for name in forms}
    for reader in readers.values():
        reader.start()
    for number, work in enumerate(works(rows, events)):
        names = list(forms)
        first = number % len(names)
        for name in names[first:] + names[:first]:
            if number == 0:  # warms everything up, and gives the readers something to read
                forms[name].take(work, number)
                meters[name].fresh()
                continue
            with readers[name].at_work():
                start = time.perf_counter()
                forms[name].take(work, number)
                seconds[name].append(time.perf_counter() - start)
            written[name].append(meters[name].fresh())
    show(seconds, written, {name: reader.end() for name, reader in readers.items()})


def show(
    seconds: Mapping[str, Sequence[float]],
    written: Mapping[str, Sequence[int]],
    reads: Mapping[str, Reads],
) -> None:
    print(
        "| form | s per batch | last fifth | MB per batch | last fifth | reads | failed | ms each |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, taken in seconds.items():
        late = len(taken) - max(1, len(taken) // 5)
        read = reads[name]
        print(
            f"| {name} | {statistics.median(taken):.2f} | {statistics.median(taken[late:]):.2f} "
            f"| {statistics.mean(written[name]) / 1e6:.1f} "
            f"| {statistics.mean(written[name][late:]) / 1e6:.1f} "
            f"| {len(read.seconds)} | {len(read.failures)} "
            f"| {statistics.median(read.seconds or [0]) * 1e3:.0f} |"
        )
    for name, read in reads.items():
        for failure in sorted(set(read.failures), key=len)[:2]:
            print(f"{name}: {failure[:150]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--events", type=int, default=50_000, help="in each batch")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), options.batches, options.events)


if __name__ == "__main__":
    main()
