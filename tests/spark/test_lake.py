"""The lake's tables below Spark: batches in any order and shape, growth, compaction, locks, identities."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from headrace.model import Event
from headrace.spark.lake import upkeep
from headrace.spark.lake.bronze import Bronze, last_cursor
from headrace.spark.lake.delta import Folder, LakeTooNew
from headrace.spark.lake.home import Home, LakeBusy, NoLake, OtherStore
from headrace.spark.lake.intake import Intake
from headrace.spark.lake.silver import Silver
from headrace.stores.memory import MemoryStore
from tests.spark.lakes import assert_exact
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
    made = Intake(lake, home, _Store(), home.claim_for("store"), lambda _doing, _done: None)  # type: ignore[arg-type]
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


def test_small_files_are_joined_and_old_ones_deleted(tmp_path: Path) -> None:
    events = history(5)
    for number, start in enumerate(range(0, len(events), 20)):
        intake(tmp_path).take(table_of(events[start : start + 20]), "stream a", number)
    done = upkeep.compact(tmp_path)
    assert done.files_after < done.files_before / 2
    assert_exact(tmp_path, events)
    assert upkeep.vacuum(tmp_path, keep_hours=24) == 0
    assert upkeep.vacuum(tmp_path, keep_hours=0) > 0
    assert_exact(tmp_path, events)
    more = history(5, 500)
    assert more[: len(events)] == events
    intake(tmp_path).take(table_of(more), "stream b", 0)
    assert_exact(tmp_path, more)


def test_a_column_that_came_later_is_added_in_place(tmp_path: Path) -> None:
    old = pa.schema([("seq", pa.int64()), ("on", pa.date32())])
    new = pa.schema([("seq", pa.int64()), ("note", pa.string()), ("on", pa.date32())])
    day = datetime(2026, 1, 1, tzinfo=UTC).date()
    folder = Folder(tmp_path / "t", old, ["on"])
    assert folder.prepare()
    folder.commit(folder.write(pa.table({"seq": [1], "on": [day]})))
    grown = Folder(tmp_path / "t", new, ["on"])
    assert grown.prepare()
    assert not grown.prepare()
    grown.commit(grown.write(pa.table({"seq": [2], "note": ["n"], "on": [day]})))
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


def test_the_last_cursor_is_that_of_the_logs_order() -> None:
    assert last_cursor(pa.table({"cursor": ["9", "10", "2"]})) == "10"
    assert last_cursor(pa.table({"cursor": ["99:5", "100:1", "100:10", "100:9"]})) == "100:10"


def test_the_store_is_told_how_far_bronze_holds_its_log(tmp_path: Path) -> None:
    events = history(1)
    made = intake(tmp_path)
    made.take(table_of(events[:50]), "stream a", 0)
    assert made._store.cursors == [events[49].cursor]  # type: ignore[attr-defined]
    assert Home(tmp_path).state().cursor == events[49].cursor
