"""The lake's tables below Spark: batches in any order and shape, growth, compaction, locks, identities."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from headrace import JobSpec
from headrace.connect import open_store
from headrace.errors import InvalidInput, StoreUnavailable
from headrace.model import TERMINAL, Event, EventKind
from headrace.spark import folding
from headrace.spark.lake import bronze, delta, silver, upkeep
from headrace.spark.lake import lock as lock_module
from headrace.spark.lake.bronze import bronze_of, last_of
from headrace.spark.lake.delta import Folder, LakeBusy, LakeTooNew
from headrace.spark.lake.gold import GOLD
from headrace.spark.lake.home import (
    Home,
    Identity,
    LakeTooOld,
    LakeUnusable,
    NoLake,
    OtherStore,
    Owner,
    this_process,
)
from headrace.spark.lake.hours import Hours, union
from headrace.spark.lake.intake import NotShared
from headrace.spark.lake.lock import KIND, Holder, Lock
from headrace.spark.lake.refresh import changed_since
from headrace.spark.lake.run import Way
from headrace.spark.lake.statistics import statistics_of
from headrace.spark.lake.storage import Storage, storage_of
from headrace.spark.lake.store import Store
from headrace.spark.lake.tasks import LocalTasks
from headrace.spark.lake.upgrade import upgrade
from headrace.stores.memory import MemoryStore
from tests.spark import gold_oracle, oracle
from tests.spark.lakes import (
    assert_exact,
    assert_filters_find_all,
    events_in,
    intake,
    take,
)
from tests.spark.wild import all_events, table_of, wild_on


def history(seed: int, steps: int = 400) -> list[Event]:
    async def made() -> list[Event]:
        store = MemoryStore()
        await (await wild_on(store, seed)).steps(steps)
        return await all_events(store)

    return asyncio.run(made())


def shares_at_random(monkeypatch: pytest.MonkeyPatch, dice: random.Random) -> None:
    """As if every batch had another size and another cluster, and no file of open rows were small."""
    real = silver.shares
    monkeypatch.setattr(silver, "shares", lambda _count: real(dice.choice([1, 2, 8])))
    monkeypatch.setattr(silver, "REWRITE_ROWS", 3)
    monkeypatch.setattr(silver, "OPEN_FILES_MAX", 2)


@pytest.mark.parametrize("seed", range(6))
def test_batches_late_twice_and_out_of_order_give_exact_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    dice = random.Random(seed)
    events = history(seed, 250)
    if seed >= 3:
        shares_at_random(monkeypatch, dice)
    order = list(events)
    if seed % 3 == 1:  # neighbours change places, as commits of PostgreSQL do
        order.sort(key=lambda event: event.seq + dice.randrange(12))
    elif seed % 3 == 2:  # anything may come at any time
        dice.shuffle(order)
    start = 0
    while start < len(order):
        end = start + dice.randrange(1, 90)
        # Parts of a log have no event in common; within one it may come twice.
        parts = dice.choice([1, 3])
        known = order[: end if parts == 1 else start]
        again = dice.sample(known, min(5, len(known)))
        take(tmp_path, order[start:end] + again, parts)
        start = end
        # While the birth of a life is missing, its events may count to the one before.
        if seed % 3 != 2:
            assert_exact(tmp_path, order[:end])
    # The log is read again from its start.
    before = bronze_of(storage_of(tmp_path)).snapshot().version
    assert take(tmp_path, events).events == 0
    assert bronze_of(storage_of(tmp_path)).snapshot().version == before
    assert_exact(tmp_path, events)
    intake(tmp_path).rebuild()
    assert_exact(tmp_path, events)


@pytest.mark.parametrize("dies_at", ["bronze", "levels", "attempts", "jobs"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_batch_that_was_cut_short_is_finished_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_at: str, when: str
) -> None:
    events = history(7)
    half = len(events) // 2
    take(tmp_path, events[:half])

    class Died(BaseException):
        pass

    real = Folder.commit

    def commit(self: Folder, *args: Any, **kwargs: Any) -> None:
        here = self.storage.path.name.startswith({"bronze": "events"}.get(dies_at, dies_at))
        if here and when == "before":
            raise Died
        real(self, *args, **kwargs)
        if here:
            raise Died

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "commit", commit)
        with pytest.raises(Died):
            take(tmp_path, events[half:])
    made = intake(tmp_path)
    made.catch_up()
    take(tmp_path, events[half:])
    assert_exact(tmp_path, events)
    snapshots = {table: folder.snapshot() for table, folder in intake(tmp_path).silver.items()}
    spans = changed_since(snapshots, 0, 1)
    assert spans is not None
    assert set(spans) == {"jobs", "paths", "attempts", "workers", "levels"}


def test_open_rows_are_rewritten_and_ended_ones_are_appended(tmp_path: Path) -> None:
    events = history(3)
    for start in range(0, len(events), 40):
        before = _ended_files(tmp_path) if start else set()
        batch = events[start : start + 40]
        take(tmp_path, batch)
        if not {event.job_id for event in batch if event.before and event.before in TERMINAL}:
            assert before <= _ended_files(tmp_path)


def _ended_files(lake: Path) -> set[str]:
    held = silver.silver_of(storage_of(lake), silver.JOBS_TABLE).snapshot()
    return {file.path for file in held.files if file.partition["finalized_on"] is not None}


def test_events_that_follow_on_read_no_past(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither bronze's events of before nor rows that have ended: the cost of a batch is its news."""
    events = [event for event in history(3) if event.before is None or event.before not in TERMINAL]
    half = len(events) // 2
    take(tmp_path, events[:half])
    ended = _ended_files(tmp_path)
    old = {file.path for file in bronze_of(storage_of(tmp_path)).snapshot().files}
    opened = opened_files(monkeypatch)
    take(tmp_path, events[half:])
    assert opened
    assert not opened & (ended | old)


def opened_files(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Which data files are opened from now on."""
    opened: set[str] = set()
    real = Storage.open_input
    whole = delta.read_files

    def spy(self: Storage, name: str) -> Any:
        opened.add(name)
        return real(self, name)

    def spy_whole(*args: Any, **kwargs: Any) -> pa.Table:
        opened.update(args[3])
        return whole(*args, **kwargs)

    monkeypatch.setattr(Storage, "open_input", spy)
    for module in (delta, silver, bronze):
        monkeypatch.setattr(module, "read_files", spy_whole)
    return opened


def test_late_events_do_not_open_what_ended_long_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL hardly a batch is without late events: the cost must not grow with the lake."""
    events = [event for event in history(3) if event.before is None or event.before not in TERMINAL]
    late = next(at for at, event in enumerate(events[-60:]) if event.kind is EventKind.ENQUEUED)
    late += len(events) - 60
    for start in range(0, len(events) - 30, 30):
        take(tmp_path, [event for event in events[start : start + 30] if event != events[late]])
    held = silver.silver_of(storage_of(tmp_path), silver.JOBS_TABLE).snapshot()
    old = {
        file.path
        for file in held.files
        if file.partition["finalized_on"] is not None and file.high["last_seq"] < events[late].seq
    }
    assert len(old) > 3
    opened = opened_files(monkeypatch)
    take(tmp_path, [events[late]])
    assert opened
    assert not opened & old


def test_small_files_are_joined_and_old_ones_deleted(tmp_path: Path) -> None:
    lake = storage_of(tmp_path)
    events = history(5)
    for start in range(0, len(events), 20):
        take(tmp_path, events[start : start + 20])
    done = upkeep.compact(lake)
    assert done.files_after < done.files_before / 2
    assert_exact(tmp_path, events)
    assert upkeep.vacuum(lake, keep_hours=24) == 0
    assert upkeep.vacuum(lake, keep_hours=0.5) == 0  # half an hour is not none
    assert upkeep.vacuum(lake, keep_hours=0) > 0
    assert_exact(tmp_path, events)
    more = history(5, 500)
    assert more[: len(events)] == events
    take(tmp_path, more)
    assert_exact(tmp_path, more)


def test_files_that_another_writer_made_are_read_on(tmp_path: Path) -> None:
    events = history(5)
    for start in range(0, len(events), 40):
        take(tmp_path, events[start : start + 40])
        for name in ("bronze/events", "silver/jobs", "silver/attempts"):
            table = DeltaTable(str(tmp_path / name))
            table.update(updates={"priority": "priority"}, predicate="priority >= 0")
    assert_exact(tmp_path, events)


def test_an_event_column_that_came_later_opens_old_lakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = history(5)
    half = len(events) // 2
    without = pa.schema([field for field in bronze.SCHEMA if field.name != "lease_until"])
    with monkeypatch.context() as patch:
        patch.setattr(bronze, "SCHEMA", without)
        take(tmp_path, events[:half])
    assert "lease_until" not in DeltaTable(str(tmp_path / "bronze" / "events")).schema().to_json()
    take(tmp_path, events[half:])
    held = bronze_of(storage_of(tmp_path)).snapshot().read(["seq", "lease_until"])
    told = {row["seq"]: row["lease_until"] for row in held.to_pylist()}
    assert told == {
        event.seq: event.lease_until if place >= half else None
        for place, event in enumerate(events)
    }
    intake(tmp_path).rebuild()
    jobs = silver.silver_of(storage_of(tmp_path), silver.JOBS_TABLE).snapshot().read()
    assert oracle.rows_of(jobs.select(folding.JOBS.names), "last_seq") == oracle.jobs(events)


def test_a_column_that_came_later_is_added_in_place(tmp_path: Path) -> None:
    old = pa.schema([("seq", pa.int64()), ("on", pa.date32())])
    new = pa.schema([("seq", pa.int64()), ("note", pa.string()), ("on", pa.date32())])
    day = datetime(2026, 1, 1, tzinfo=UTC).date()
    folder = Folder(storage_of(tmp_path / "t"), old, ["on"])
    assert folder.prepare()
    folder.commit(folder.snapshot(), folder.write(pa.table({"seq": [1], "on": [day]})))
    grown = Folder(storage_of(tmp_path / "t"), new, ["on"])
    assert grown.prepare()
    assert not grown.prepare()
    rows = pa.table({"seq": [2], "note": ["n"], "on": [day]})
    grown.commit(grown.snapshot(), grown.write(rows))
    assert grown.snapshot().read(["seq", "note"]).sort_by("seq").to_pylist() == [
        {"seq": 1, "note": None},
        {"seq": 2, "note": "n"},
    ]
    with pytest.raises(LakeTooNew, match="does not know: note"):
        folder.prepare()


def test_a_lake_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    home = Home(storage_of(tmp_path))
    home.make(Identity(format=3, lake_id="l", store_id="s", created_at=datetime.now(UTC)))
    with pytest.raises(LakeTooNew, match="format 3"):
        home.identity()
    intake(tmp_path)
    DeltaTable(str(tmp_path / "silver" / "jobs")).alter.add_columns(
        [Field("mood", PrimitiveType("string"))]
    )
    with pytest.raises(LakeTooNew, match="mood"):
        intake(tmp_path)


def test_a_lake_belongs_to_one_store(tmp_path: Path) -> None:
    home = Home(storage_of(tmp_path))
    with pytest.raises(NoLake):
        home.identity()
    known = home.claim_for("one")
    assert home.claim_for("one") == known
    with pytest.raises(OtherStore, match="another store"):
        home.claim_for("two")
    # Somebody else has made it in the meantime.
    home.make(Identity(lake_id="other", store_id="two", created_at=datetime.now(UTC)))
    assert home.identity() == known


@pytest.mark.parametrize(
    "path",
    [Path("s3:/bucket/lake"), "ftp://host/lake", "a%41", "back\\slash", "a\nb", "s3://b/a%41"],
)
def test_a_path_where_no_lake_can_be_is_refused(path: str | Path) -> None:
    with pytest.raises(InvalidInput, match="nothing was changed: give"):
        storage_of(path)


def test_a_lake_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lake = Home(storage_of(tmp_path / "file" / "lake"))
    with pytest.raises(LakeUnusable, match=r"Not a directory.*last commit"), lake.locked():
        pass
    lake = Home(storage_of(tmp_path / "lake"))
    with pytest.raises(LakeUnusable, match=r"No space left.*Make room"), lake.locked():
        Path("/dev/full").write_text("more")
    with pytest.raises(ConnectionResetError), lake.locked():
        raise ConnectionResetError(errno.ECONNRESET, "that is not the lake's fault")


def test_files_that_the_driver_does_not_see_join_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a folder of each host's own: readers could open none of it."""
    made = intake(tmp_path)
    real = Storage.write

    def elsewhere(self: Storage, name: str, content: Any) -> int:
        return real(Storage(f"{self.url}-of-another-host", self.options), name, content)

    monkeypatch.setattr(Storage, "write", elsewhere)
    version = made.bronze.snapshot().version
    with pytest.raises(NotShared, match="all hosts of the cluster share"):
        take(tmp_path, history(1))
    assert made.bronze.snapshot().version == version


HOLDER = """
import sys, time
from headrace.spark.lake.home import Home
from headrace.spark.lake.storage import storage_of
with Home(storage_of(sys.argv[1])).locked():
    print("held", flush=True)
    time.sleep(600)
"""


def test_one_pipeline_at_a_time_and_a_killed_one_leaves_no_lock(tmp_path: Path) -> None:
    home = Home(storage_of(tmp_path))
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LakeBusy, match=f"process {holder.pid} on"), home.locked():
            pass
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        assert holder.stdout is not None
        holder.stdout.close()
    with home.locked():
        pass


def test_a_store_that_is_away_for_a_moment_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream waits for it, too: what it tells the store must not end a pipeline that follows."""
    asyncio.run(_create(f"sqlite:///{tmp_path}/jobs.db"))
    monkeypatch.setattr("headrace.spark.source.patience.time.sleep", lambda _: None)
    with Store(f"sqlite:///{tmp_path}/jobs.db") as store:
        reached = store._manager.reader_reached
        refusals = iter([True, True, False])

        async def away(*args: Any, **kwargs: Any) -> object:
            if next(refusals):
                raise StoreUnavailable("away")
            return await reached(*args, **kwargs)

        monkeypatch.setattr(store._manager, "reader_reached", away)
        store.reached("a", "", "here")
        assert not list(refusals)


async def _create(url: str) -> None:
    await (await open_store(url, migrate=True)).close()


# --- the lock in the store ----------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    asyncio.run(_create(f"sqlite:///{tmp_path}/jobs.db"))
    with Store(f"sqlite:///{tmp_path}/jobs.db") as store:
        yield store


def _held_by(store: Store, pid: int, host: str, seconds: float) -> None:
    now = datetime.now(UTC)
    holder = Holder(
        owner=Owner(host=host, pid=pid, since=now), until=now + timedelta(seconds=seconds), fence=7
    )
    body = msgspec.json.encode(holder)
    assert store.put_record(msgspec.structs.replace(store.record(KIND, "a"), body_json=body))


def test_one_pipeline_at_a_time_whatever_its_machine(store: Store, tmp_path: Path) -> None:
    place = storage_of("s3://bucket/lake")
    with (
        Lock(store, place, "a").held(),
        pytest.raises(LakeBusy, match=f"s3://bucket/lake: process {os.getpid()} on"),
        Lock(store, place, "a").held(),
    ):
        pass
    with Lock(store, place, "a").held(), Lock(store, place, "b").held():
        pass  # other lakes are another matter
    _held_by(store, 1, "another", 30)
    with pytest.raises(LakeBusy, match="process 1 on another"), Lock(store, place, "a").held():
        pass
    _held_by(store, 1, "another", -1)  # it has not said anything for too long
    lock = Lock(store, place, "a")
    with lock.held():
        assert lock.fence == 8
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    _held_by(store, gone.pid, this_process().host, 30)  # killed on this machine
    with Lock(store, place, "a").held():
        pass


def _until_it_is_lost(lock: Lock) -> None:
    for _ in range(500):
        lock.check()
        time.sleep(0.01)


def test_a_stolen_lock_is_noticed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process slept for too long, and another took over: the next batch is refused."""
    monkeypatch.setattr(lock_module, "RENEW_SECONDS", 0.01)
    lock = Lock(store, storage_of("s3://bucket/lake"), "a")
    with lock.held():
        lock.check()
        while True:  # until it falls between two of its own
            try:
                _held_by(store, 1, "another", 30)
                break
            except AssertionError:
                continue
        with pytest.raises(LakeBusy, match="process 1 on another"):
            _until_it_is_lost(lock)
    held = msgspec.json.decode(store.record(KIND, "a").body_json, type=Holder)
    assert held.owner.pid == 1, "it is the other's still"


def test_the_last_event_is_that_of_the_logs_order() -> None:
    def told(*cursors: str) -> str:
        count = len(cursors)
        at = pa.array([0] * count, pa.timestamp("us", tz="UTC"))
        rows = {"cursor": cursors, "job_id": ["j"] * count, "version": [1] * count, "at": at}
        return last_of(pa.table(rows)).cursor

    assert told("9", "10", "2") == "10"
    assert told("99:5", "100:1", "100:10", "100:9") == "100:10"


def test_bronze_lies_on_the_disk_before_the_store_may_forget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut, too: what is trimmed from the log is nowhere else."""
    flushed: set[int] = set()
    fsync = os.fsync

    def spy(number: int) -> None:
        flushed.add(os.fstat(number).st_ino)
        fsync(number)

    monkeypatch.setattr(os, "fsync", spy)
    lake = tmp_path / "lake"
    made = intake(lake)
    made.append([table_of(history(1))], pa.Table.to_batches)
    durable = set(flushed)
    held = made.bronze.snapshot()
    folder = held.storage.path
    files = [folder / file.path for file in held.files]
    log = folder / "_delta_log"
    needed = [*files, *(file.parent for file in files), log / f"{held.version:020}.json", log]
    needed += [log / f"{0:020}.json", folder, folder.parent, lake]
    assert [str(path) for path in needed if path.stat().st_ino not in durable] == []


@pytest.mark.parametrize("seed", range(6))
def test_gold_stays_as_it_is_but_for_the_hours_a_batch_names(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    order = history(seed, 250)
    if seed % 2:  # neighbours change places, as commits of PostgreSQL do
        order.sort(key=lambda event: event.seq + dice.randrange(12))
    before: dict[str, list[dict[str, Any]]] = {}
    start = number = 0
    kept = 0
    while start < len(order):
        end = start + dice.randrange(1, 60)
        take(tmp_path, order[start:end])
        snapshots = {table: folder.snapshot() for table, folder in intake(tmp_path).silver.items()}
        spans = changed_since(snapshots, number - 1, number)
        assert spans is not None
        after = gold_oracle.tables(order[:end])
        for table in GOLD if before else ():
            changed = union(span for kind in table.changes_with for span in spans[kind])
            old, new = (_outside(changed, rows[table.name]) for rows in (before, after))
            assert old == new, table.name
            kept += len(old)
        before, start, number = after, end, number + 1
    assert kept


def _outside(changed: Hours | None, rows: Iterable[dict[str, Any]]) -> list[str]:
    """The rows of other hours than these."""

    def inside(hour: datetime) -> bool:
        return changed is not None and any(
            since <= hour and (until is None or hour < until) for since, until in changed.times()
        )

    return sorted(repr(row) for row in rows if not inside(row["hour"]))


def test_a_job_that_was_open_for_days_changes_only_what_is_new(tmp_path: Path) -> None:
    """Else every such job would have gold computed anew for all the days since it was submitted."""

    async def made() -> tuple[list[Event], int, int]:
        store = MemoryStore()
        wild = await wild_on(store, 0)
        manager, clock = wild.manager, wild.clock
        due = {"delayed": clock.now() + timedelta(days=10)}
        await manager.submit_many(
            [
                JobSpec(
                    type="t",
                    id=name,
                    run_at=due.get(name),
                    lifetime_seconds=None,
                )
                for name in ("delayed", "runs", "waits")
            ]
        )
        await manager.claim("w1", limit=1, lease_seconds=20 * 86_400)
        before = len(await all_events(store))
        clock.advance(10 * 86_400 + 60)
        for job in await manager.claim("w2", limit=2):
            await manager.complete(job.id, job.token)
        between = len(await all_events(store))
        await manager.abandon("runs")
        return await all_events(store), before, between

    events, before, between = asyncio.run(made())
    take(tmp_path, events[:before])
    take(tmp_path, events[before:between])
    take(tmp_path, events[between:])
    folders = intake(tmp_path).silver
    snapshots = {table: folder.snapshot() for table, folder in folders.items()}
    spans = changed_since(snapshots, 0, 1)
    assert spans is not None
    hour = events[before].at.replace(minute=0, second=0, microsecond=0)
    for kind, found in spans.items():
        hours = union(found)
        assert hours is not None, kind
        assert hours.first == hour, kind
    # An attempt over ten days: its worker was busy in all of their hours, and nothing else is news of them.
    later = changed_since(snapshots, 1, 2)
    assert later is not None
    first = {kind: hours.first for kind, found in later.items() if (hours := union(found))}
    assert first["attempts"] == hour
    assert first["workers"] == events[0].at.replace(minute=0, second=0, microsecond=0)
    assert min(first[kind] for kind in first if kind != "workers") == hour


def test_bronze_notes_how_far_it_holds_the_log(tmp_path: Path) -> None:
    events = history(1)
    taken = take(tmp_path, events[:50])
    assert taken == (50, events[49].cursor)
    assert Home(storage_of(tmp_path)).cursor() == events[49].cursor
    upkeep.compact(storage_of(tmp_path))
    assert Home(storage_of(tmp_path)).cursor() == events[49].cursor


def test_a_history_is_a_query_on_bronze(tmp_path: Path) -> None:
    events = history(3)
    for start in range(0, len(events), 100):
        take(tmp_path, events[start : start + 100])
    for job_id in ("job-1", "chain-3-0", "nobody"):
        told = bronze.events_of(storage_of(tmp_path), job_id)
        assert told.equals(table_of([event for event in events if event.job_id == job_id]))


def test_a_run_knows_how_far_along_the_log_it_is() -> None:
    """Also where the log was trimmed before it, numbers are missing, and more comes meanwhile."""
    way = Way(start=100, end=140)
    assert way.at("") is None
    assert way.at("110") == 0.25
    assert way.at("7:130") == 0.75
    assert way.at("141") == 1.0
    assert Way(5, 5).at("5") is None


# --- lakes of an earlier format -------------------------------------------------------------------


@pytest.fixture
def old_lake(tmp_path: Path) -> Path:
    """As the version before wrote it, with events of two days and a gold table."""
    with tarfile.open(Path(__file__).parent / "data" / "lake-of-format-1.tgz") as tar:
        tar.extractall(tmp_path, filter="data")
    return tmp_path / "lake"


def test_a_lake_of_format_1_is_refused_until_it_is_upgraded_and_then_exact(old_lake: Path) -> None:
    lake = storage_of(old_lake)
    with pytest.raises(LakeTooOld, match=r"pipeline upgrade --lake .*/lake"):
        Home(lake).identity()
    told = DeltaTable(str(old_lake / "bronze" / "events")).to_pyarrow_table()
    old = msgspec.json.decode((old_lake / "_headrace" / "lake.json").read_bytes())
    events = events_in(told)
    assert upgrade(lake, LocalTasks()) == len(events) == 80
    assert_exact(lake, events)
    home = Home(lake)
    assert (home.identity().lake_id, home.identity().store_id) == (old["lake_id"], old["store_id"])
    assert home.cursor() == "80"
    assert not DeltaTable.is_deltatable(str(old_lake / "gold" / "throughput")), "computed anew"
    assert not (old_lake / "_headrace" / "state.json").exists()
    with pytest.raises(NoLake, match="no lake of format 1"):
        upgrade(lake, LocalTasks())
    kept = DeltaTable(str(old_lake / "_headrace" / "format-1" / "bronze" / "events"))
    assert kept.to_pyarrow_table().num_rows == 80


@pytest.mark.parametrize("renames", range(1, 6))
def test_an_upgrade_that_was_cut_short_is_finished_by_the_next(
    old_lake: Path, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    lake = storage_of(old_lake)
    events = events_in(DeltaTable(str(old_lake / "bronze" / "events")).to_pyarrow_table())

    class Died(BaseException):
        pass

    real, left = Path.rename, iter(range(renames))

    def rename(self: Path, target: Path) -> Path:
        if next(left, None) is None:
            raise Died
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename)
        with pytest.raises(Died):
            upgrade(lake, LocalTasks())
    with pytest.raises(LakeTooOld):
        Home(lake).identity()
    upgrade(lake, LocalTasks())
    assert_exact(lake, events)


# --- what the Delta log says of a file ------------------------------------------------------------

KINDS = pa.schema(
    [
        ("word", pa.string()),
        ("long_word", pa.string()),
        ("number", pa.int64()),
        ("ratio", pa.float64()),
        ("flag", pa.bool_()),
        ("moment", pa.timestamp("us", tz="UTC")),
        ("nothing", pa.string()),
        ("sometimes", pa.string()),
        ("day", pa.date32()),
    ]
)


def rows_of_kinds(number: int) -> pa.Table:
    moment = datetime(2026, 1, number, 3, 4, 5, 678901, UTC)
    return pa.table(
        {
            "word": [f"x{number}", "y", "é", ""],
            "long_word": [f"{'z' * 100}{number}", "a", "\U0001f600" * 70, "z" * 64],
            "number": [number, 2, -5, 2**62],
            "ratio": [number * 1.5, 2.5, -0.0, 1e300],
            "flag": [number % 2 == 0] * 4,
            "moment": [moment] * 4,
            "nothing": [None] * 4,
            "sometimes": [None, f"m{number}", None, "m"],
            "day": [moment.date()] * 4,
        },
        schema=KINDS,
    )


def test_a_filter_on_any_column_finds_its_rows(tmp_path: Path) -> None:
    folder = Folder(storage_of(tmp_path / "t"), KINDS, ["day"])
    folder.prepare()
    for number in (1, 2, 3):
        folder.commit(folder.snapshot(), folder.write(rows_of_kinds(number)))
    assert_filters_find_all(folder.storage.path)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
def test_a_file_that_cannot_be_bounded_is_never_passed_over(tmp_path: Path, odd: float) -> None:
    folder = Folder(storage_of(tmp_path / "t"), KINDS, ["day"])
    folder.prepare()
    rows = rows_of_kinds(1)
    place = rows.schema.names.index("ratio")
    odd_rows = rows.set_column(place, "ratio", pa.array([odd] * 4, pa.float64()))
    folder.commit(folder.snapshot(), folder.write(odd_rows.cast(KINDS)))
    dataset = folder.storage.delta().to_pyarrow_dataset()
    assert dataset.to_table(filter=pc.field("word") == "x1").num_rows == 1
    (file,) = folder.snapshot().files
    assert file.may_hold("number", 2**62, 2**62)


def test_the_statistics_of_a_lake_from_before_are_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(storage_of(tmp_path / "t"), KINDS, ["day"])

    def numbers_and_times_only(rows: pa.Table) -> dict[str, Any]:
        told = statistics_of(rows)
        for bounds in (told["minValues"], told["maxValues"]):
            for name in ("word", "long_word", "ratio", "flag", "sometimes"):
                bounds.pop(name, None)
        return told

    with monkeypatch.context() as patch:
        patch.setattr(delta, "statistics_of", numbers_and_times_only)
        patch.setattr(delta, "_STATISTICS_VERSION", -1)
        folder.prepare()
        for number in (1, 2):
            folder.commit(folder.snapshot(), folder.write(rows_of_kinds(number)))
    dataset = folder.storage.delta().to_pyarrow_dataset()
    assert dataset.to_table(filter=pc.field("word") == "x1").num_rows == 0  # the lie
    before = {file.path for file in folder.snapshot().files}
    assert not folder.prepare()
    assert {file.path for file in folder.snapshot().files} == before
    assert_filters_find_all(folder.storage.path)
    version = folder.snapshot().version
    folder.prepare()
    assert folder.snapshot().version == version, "mended once"


def test_a_column_that_came_later_is_bounded_in_old_files(tmp_path: Path) -> None:
    names = [name for name in KINDS.names if name != "word"]
    old = Folder(
        storage_of(tmp_path / "t"), pa.schema([KINDS.field(name) for name in names]), ["day"]
    )
    old.prepare()
    old.commit(old.snapshot(), old.write(rows_of_kinds(1).select(names)))
    grown = Folder(storage_of(tmp_path / "t"), KINDS, ["day"])
    assert grown.prepare()
    grown.commit(grown.snapshot(), grown.write(rows_of_kinds(2)))
    assert_filters_find_all(grown.storage.path)


def test_a_commit_holds_only_on_what_it_was_computed_from(tmp_path: Path) -> None:
    folder = Folder(storage_of(tmp_path / "t"), KINDS, ["day"])
    folder.prepare()
    base = folder.snapshot()
    folder.commit(base, folder.write(rows_of_kinds(1)))
    with pytest.raises(LakeBusy, match="another writer since version"):
        folder.commit(base, folder.write(rows_of_kinds(1)))
    assert folder.snapshot().rows == 4
