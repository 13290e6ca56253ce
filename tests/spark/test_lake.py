"""The lake's tables below Spark: batches in any order and shape, growth, compaction, locks, identities."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from headrace import JobSpec
from headrace.connect import open_store
from headrace.errors import InvalidInput, StoreUnavailable
from headrace.model import TERMINAL, Event, EventKind
from headrace.spark.lake import delta, upkeep
from headrace.spark.lake.bronze import Bronze, last_cursor
from headrace.spark.lake.delta import Folder, LakeBusy, LakeTooNew, Snapshot
from headrace.spark.lake.home import Home, LakeUnusable, NoLake, OtherStore
from headrace.spark.lake.intake import Intake, Way
from headrace.spark.lake.silver import Silver
from headrace.spark.lake.statistics import statistics_of
from headrace.spark.lake.store import Store
from headrace.stores.memory import MemoryStore
from tests.spark import gold_oracle
from tests.spark.lakes import assert_exact, assert_filters_find_all
from tests.spark.wild import all_events, table_of, wild_on


class _Store:
    """What the intake needs of a store: to be told how far it came."""

    def __init__(self) -> None:
        self.cursors: list[str] = []

    def reached(self, lake_id: str, cursor: str, label: str) -> None:
        self.cursors.append(cursor)


def history(seed: int, steps: int = 400) -> list[Event]:
    async def made() -> list[Event]:
        store = MemoryStore()
        await (await wild_on(store, seed)).steps(steps)
        return await all_events(store)

    return asyncio.run(made())


def intake(lake: Path) -> Intake:
    home = Home(lake)
    made = Intake(lake, home, _Store(), home.claim_for("store"), lambda _step: None)  # type: ignore[arg-type]
    made.prepare()
    return made


@pytest.mark.parametrize("seed", range(6))
def test_batches_late_twice_and_out_of_order_give_exact_tables(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    events = history(seed)
    order = list(events)
    if seed % 3 == 1:  # neighbours change places, as commits of PostgreSQL do
        order.sort(key=lambda event: event.seq + dice.randrange(12))
    elif seed % 3 == 2:  # anything may come at any time
        dice.shuffle(order)
    number = start = 0
    while start < len(order):
        end = start + dice.randrange(1, 90)
        batch = order[start:end] + dice.sample(order[:end], min(end, 5, len(order[:end])))
        intake(tmp_path).take(table_of(batch), "stream a", number)
        if dice.random() < 0.3:  # Spark tells the batch again
            intake(tmp_path).take(table_of(batch), "stream a", number)
        number, start = number + 1, end
        # While the birth of a life is missing, its events may count to the one before.
        if seed % 3 != 2:
            assert_exact(tmp_path, order[:end])
    # A new checkpoint begins at the start of the log, and numbers its batches from 0.
    before = Bronze(tmp_path).folder.snapshot().version
    intake(tmp_path).take(table_of(events), "stream b", 0)
    assert Bronze(tmp_path).folder.snapshot().version == before
    assert_exact(tmp_path, events)


@pytest.mark.parametrize("dies_after", ["bronze", "touched", "attempts"])
def test_a_batch_that_was_cut_short_is_finished_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_after: str
) -> None:
    events = history(7)
    half = len(events) // 2
    intake(tmp_path).take(table_of(events[:half]), "stream a", 0)

    class Died(BaseException):
        pass

    def die(*_: object) -> None:
        raise Died

    with monkeypatch.context() as patch:
        match dies_after:
            case "bronze":
                patch.setattr(Silver, "plan", die)
            case "touched":
                patch.setattr(Silver, "take", die)
            case "attempts":
                commits = 0
                real = Folder.commit

                def second_fails(self: Folder, *args: object, **kwargs: object) -> None:
                    nonlocal commits
                    if self.path.name == "jobs":
                        raise Died
                    commits += 1
                    real(self, *args, **kwargs)  # type: ignore[arg-type]

                patch.setattr(Folder, "commit", second_fails)
            case _:
                raise AssertionError(dies_after)
        with pytest.raises(Died):
            intake(tmp_path).take(table_of(events[half:]), "stream a", 1)
    again = intake(tmp_path)
    again.catch_up()
    assert_exact(tmp_path, events)
    again.take(table_of(events[half:]), "stream a", 1)
    assert_exact(tmp_path, events)
    assert Home(tmp_path).state().touched.keys() == {0, 1}


def test_open_jobs_are_rewritten_and_ended_ones_are_appended(tmp_path: Path) -> None:
    events = history(3)
    for number, start in enumerate(range(0, len(events), 40)):
        before = (
            {
                file.path
                for file in Silver(tmp_path).jobs.snapshot().files
                if file.partition["ended"]
            }
            if number
            else set()
        )
        batch = events[start : start + 40]
        intake(tmp_path).take(table_of(batch), "stream a", number)
        revived = {event.job_id for event in batch if event.before and event.before.value in ENDED}
        after = {file.path for file in Silver(tmp_path).jobs.snapshot().files}
        if not revived:
            assert before <= after


ENDED = ("completed", "failed", "dead", "cancelled", "abandoned")


def test_late_events_do_not_open_what_ended_long_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL hardly a batch is without late events: the cost must not grow with the lake."""
    events = [event for event in history(3) if event.before is None or event.before not in TERMINAL]
    late = next(at for at, event in enumerate(events[-60:]) if event.kind is EventKind.ENQUEUED)
    late -= 60
    for number, start in enumerate(range(0, len(events) - 30, 30)):
        batch = [event for event in events[start : start + 30] if event != events[late]]
        intake(tmp_path).take(table_of(batch), "stream a", number)
    old = {
        file.path
        for file in Silver(tmp_path).jobs.snapshot().files
        if file.partition["ended"] and file.high["last_seq"] < events[late].seq
    }
    assert len(old) > 3
    opened: set[str] = set()
    read = Snapshot.read

    def spy(self: Snapshot, *args: Any, **kwargs: Any) -> pa.Table:
        opened.update(file.path for file in kwargs.get("files") or ())
        return read(self, *args, **kwargs)

    monkeypatch.setattr(Snapshot, "read", spy)
    intake(tmp_path).take(table_of([events[late]]), "stream b", 0)
    assert opened
    assert not opened & old


def test_small_files_are_joined_and_old_ones_deleted(tmp_path: Path) -> None:
    events = history(5)
    for number, start in enumerate(range(0, len(events), 20)):
        intake(tmp_path).take(table_of(events[start : start + 20]), "stream a", number)
    done = upkeep.compact(tmp_path)
    assert done.files_after < done.files_before / 2
    assert_exact(tmp_path, events)
    assert upkeep.vacuum(tmp_path, keep_hours=24) == 0
    assert upkeep.vacuum(tmp_path, keep_hours=0.5) == 0  # half an hour is not none
    assert upkeep.vacuum(tmp_path, keep_hours=0) > 0
    assert_exact(tmp_path, events)
    more = history(5, 500)
    assert more[: len(events)] == events
    intake(tmp_path).take(table_of(more), "stream b", 0)
    assert_exact(tmp_path, more)


def test_files_that_another_writer_made_are_read_on(tmp_path: Path) -> None:
    events = history(5)
    for number, start in enumerate(range(0, len(events), 40)):
        intake(tmp_path).take(table_of(events[start : start + 40]), "stream a", number)
        for name in ("bronze/events", "silver/jobs", "silver/attempts"):
            table = DeltaTable(str(tmp_path / name))
            table.update(updates={"priority": "priority"}, predicate="priority >= 0")
    assert_exact(tmp_path, events)


def test_a_column_that_came_later_is_added_in_place(tmp_path: Path) -> None:
    old = pa.schema([("seq", pa.int64()), ("on", pa.date32())])
    new = pa.schema([("seq", pa.int64()), ("note", pa.string()), ("on", pa.date32())])
    day = datetime(2026, 1, 1, tzinfo=UTC).date()
    folder = Folder(tmp_path / "t", old, ["on"])
    assert folder.prepare()
    folder.commit(folder.snapshot(), folder.write(pa.table({"seq": [1], "on": [day]})))
    grown = Folder(tmp_path / "t", new, ["on"])
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
    intake(tmp_path)
    DeltaTable(str(tmp_path / "silver" / "jobs")).alter.add_columns(
        [Field("mood", PrimitiveType("string"))]
    )
    with pytest.raises(LakeTooNew, match="mood"):
        intake(tmp_path)
    home = Home(tmp_path)
    text = (home.path / "lake.json").read_text()
    (home.path / "lake.json").write_text(text.replace('"format": 1', '"format": 2'))
    with pytest.raises(LakeTooNew, match="format 2"):
        home.identity()


def test_a_lake_belongs_to_one_store(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with pytest.raises(NoLake):
        home.identity()
    known = home.claim_for("one")
    assert home.claim_for("one") == known
    with pytest.raises(OtherStore, match="another store"):
        home.claim_for("two")


@pytest.mark.parametrize("path", ["s3://bucket/lake", "file:/lake", "a%41", "back\\slash", "a\nb"])
def test_a_path_where_no_lake_can_be_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match="nothing was changed: give"):
        Home(Path(path).absolute())


def test_a_lake_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lake = Home(tmp_path / "file" / "lake")
    with pytest.raises(LakeUnusable, match=r"Not a directory.*last commit"), lake.locked():
        pass
    lake = Home(tmp_path / "lake")
    with pytest.raises(LakeUnusable, match=r"No space left.*Make room"), lake.locked():
        Path("/dev/full").write_text("more")
    with pytest.raises(ConnectionResetError), lake.locked():
        raise ConnectionResetError(errno.ECONNRESET, "that is not the lake's fault")


HOLDER = """
import sys, time
from pathlib import Path
from headrace.spark.lake.home import Home
with Home(Path(sys.argv[1])).locked():
    print("held", flush=True)
    time.sleep(600)
"""


def test_one_pipeline_at_a_time_and_a_killed_one_leaves_no_lock(tmp_path: Path) -> None:
    home = Home(tmp_path)
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


def test_the_last_cursor_is_that_of_the_logs_order() -> None:
    assert last_cursor(pa.table({"cursor": ["9", "10", "2"]})) == "10"
    assert last_cursor(pa.table({"cursor": ["99:5", "100:1", "100:10", "100:9"]})) == "100:10"


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
    told: list[set[int]] = []
    made = intake(tmp_path)
    made._store.reached = lambda *_: told.append(set(flushed))  # type: ignore[method-assign]
    made.take(table_of(history(1)), "stream a", 0)
    (durable,) = told
    held = made.bronze.folder.snapshot()
    files = [Path(path) for path in held.paths()]
    log = held.folder / "_delta_log"
    needed = [*files, *(file.parent for file in files), log / f"{held.version:020}.json", log]
    needed += [log / f"{0:020}.json", held.folder, held.folder.parent, tmp_path]
    assert [str(path) for path in needed if path.stat().st_ino not in durable] == []
    # So do the notes of what is left to do.
    assert {
        path.stat().st_ino for path in (made._home.path, made._home.path / "state.json")
    } <= durable


def test_nobody_sees_a_batch_that_is_half_taken_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = intake(tmp_path)
    held: list[bool] = []
    commit = Folder.commit

    def spy(self: Folder, *args: Any, **kwargs: Any) -> None:
        held.append(made.calm.locked())
        commit(self, *args, **kwargs)
        held.append(made.calm.locked())

    monkeypatch.setattr(Folder, "commit", spy)
    made.take(table_of(history(1)), "stream a", 0)
    assert held == [True] * 6  # bronze, attempts, jobs
    assert not made.calm.locked()


@pytest.mark.parametrize("seed", range(6))
def test_gold_stays_as_it_is_before_what_a_batch_touches(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    order = history(seed, 250)
    if seed % 2:  # neighbours change places, as commits of PostgreSQL do
        order.sort(key=lambda event: event.seq + dice.randrange(12))
    before: dict[str, list[dict[str, Any]]] = {}
    start = number = 0
    while start < len(order):
        end = start + dice.randrange(1, 60)
        intake(tmp_path).take(table_of(order[start:end]), "stream a", number)
        since = Home(tmp_path).state().touched[number].replace(minute=0, second=0, microsecond=0)
        after = gold_oracle.tables(order[:end])
        for name, rows in before.items():
            assert _until(since, rows) == _until(since, after[name]), name
        before, start, number = after, end, number + 1


def _until(hour: datetime, rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(repr(row) for row in rows if row["hour"] < hour)


def test_a_job_that_was_open_for_days_touches_only_what_is_new(tmp_path: Path) -> None:
    """Else every such job would have gold computed anew for all the days since it was submitted."""

    async def made() -> tuple[list[Event], int]:
        store = MemoryStore()
        wild = await wild_on(store, 0)
        manager, clock = wild.manager, wild.clock
        due = {"delayed": clock.now() + timedelta(days=10)}
        await manager.submit_many(
            [
                JobSpec(type="t", id=name, run_at=due.get(name), lifetime_seconds=None)
                for name in ("delayed", "runs", "waits")
            ]
        )
        await manager.claim("w1", limit=1, lease_seconds=20 * 86_400)
        before = len(await all_events(store))
        clock.advance(10 * 86_400 + 60)
        for job in await manager.claim("w2", limit=2):
            await manager.complete(job.id, job.token)
        return await all_events(store), before

    events, before = asyncio.run(made())
    intake(tmp_path).take(table_of(events[:before]), "stream a", 0)
    intake(tmp_path).take(table_of(events[before:]), "stream a", 1)
    assert {event.job_id for event in events[before:]} == {"delayed", "waits"}
    assert Home(tmp_path).state().touched[1] == events[before].at
    assert events[before].at - events[0].at > timedelta(days=10)


def test_the_store_is_told_how_far_bronze_holds_its_log(tmp_path: Path) -> None:
    events = history(1)
    made = intake(tmp_path)
    made.take(table_of(events[:50]), "stream a", 0)
    assert made._store.cursors == [events[49].cursor]  # type: ignore[attr-defined]
    assert Home(tmp_path).state().cursor == events[49].cursor


def test_a_stream_knows_how_far_along_the_log_it_is() -> None:
    """Also where the log was trimmed before it, numbers are missing, and more comes meanwhile."""

    def events(*seqs: int) -> pa.Table:
        return pa.table({"seq": pa.array(seqs, pa.int64())})

    way = Way(end=140)
    assert way.at(events()) is None
    assert way.at(events(101, 102, 110)) == 0.25
    assert way.at(events(112, 111, 130)) == 0.75
    assert way.at(events(139, 141)) == 1.0
    assert way.at(events(142)) is None


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
    folder = Folder(tmp_path / "t", KINDS, ["day"])
    folder.prepare()
    for number in (1, 2, 3):
        folder.commit(folder.snapshot(), folder.write(rows_of_kinds(number)))
    assert_filters_find_all(folder.path)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
def test_a_file_that_cannot_be_bounded_is_never_passed_over(tmp_path: Path, odd: float) -> None:
    folder = Folder(tmp_path / "t", KINDS, ["day"])
    folder.prepare()
    rows = rows_of_kinds(1)
    place = rows.schema.names.index("ratio")
    odd_rows = rows.set_column(place, "ratio", pa.array([odd] * 4, pa.float64()))
    folder.commit(folder.snapshot(), folder.write(odd_rows.cast(KINDS)))
    dataset = DeltaTable(str(folder.path)).to_pyarrow_dataset()
    assert dataset.to_table(filter=pc.field("word") == "x1").num_rows == 1
    assert folder.snapshot().high("number") == 2**62


def test_the_statistics_of_a_lake_from_before_are_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(tmp_path / "t", KINDS, ["day"])

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
    dataset = DeltaTable(str(folder.path)).to_pyarrow_dataset()
    assert dataset.to_table(filter=pc.field("word") == "x1").num_rows == 0  # the lie
    before = {file.path for file in folder.snapshot().files}
    assert not folder.prepare()
    assert {file.path for file in folder.snapshot().files} == before
    assert_filters_find_all(folder.path)
    version = folder.snapshot().version
    folder.prepare()
    assert folder.snapshot().version == version, "mended once"


def test_a_column_that_came_later_is_bounded_in_old_files(tmp_path: Path) -> None:
    names = [name for name in KINDS.names if name != "word"]
    old = Folder(tmp_path / "t", pa.schema([KINDS.field(name) for name in names]), ["day"])
    old.prepare()
    old.commit(old.snapshot(), old.write(rows_of_kinds(1).select(names)))
    grown = Folder(tmp_path / "t", KINDS, ["day"])
    assert grown.prepare()
    grown.commit(grown.snapshot(), grown.write(rows_of_kinds(2)))
    assert_filters_find_all(grown.path)


def test_a_commit_holds_only_on_what_it_was_computed_from(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "t", KINDS, ["day"])
    folder.prepare()
    base = folder.snapshot()
    folder.commit(base, folder.write(rows_of_kinds(1)))
    with pytest.raises(LakeBusy, match="another writer since version"):
        folder.commit(base, folder.write(rows_of_kinds(1)))
    assert folder.snapshot().rows == 4
