"""The rejects table: made by several writes at once, and out of reach."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headrace import connect
from headrace.spark.sink import reject_count
from headrace.spark.sink.failures import BadRows, RejectsNotKept
from headrace.spark.sink.rejects import keep_rejects
from headrace.spark.sink.rows import BadRow
from headrace.stores.base import Record
from tests.spark.writing import jobs_of, payloads, run_task, write, writer


def mixed(count: int) -> pa.RecordBatch:
    """Every second row is bad."""
    return payloads(count, type=["t" if n % 2 else " " for n in range(count)])


def test_several_writes_may_make_the_table_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "rejects")
    start = threading.Barrier(6)
    failed: list[Exception] = []

    def keep(number: int) -> None:
        start.wait()
        try:
            rows = [BadRow(0, row, "CODE", "reason", "{}") for row in range(5)]
            keep_rejects(path, f"w{number}", None, rows)
        except Exception as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=keep, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert DeltaTable(path).to_pyarrow_table().num_rows == 30


@pytest.mark.parametrize("atomic", ["true", "false"])
def test_a_write_whose_rejects_cannot_be_kept_says_what_is_stored(
    durable_url: str, tmp_path: Path, atomic: str
) -> None:
    (tmp_path / "file").touch()
    path = str(tmp_path / "file" / "rejects")
    with pytest.raises(RejectsNotKept) as told:
        write(durable_url, mixed(6), bad_rows="reject", rejects=path, atomic=atomic)
    assert "for 3 bad rows" in told.value.message
    stored = jobs_of(durable_url)
    if atomic == "true":
        assert "nothing was stored" in told.value.message
        assert stored == []
    else:
        assert "3 other rows are stored" in told.value.message
        assert len(stored) == 3


def test_a_failed_write_knows_of_what_an_earlier_attempt_has_stored(durable_url: str) -> None:
    good = payloads(8, type=["t"] * 8)
    own = writer(durable_url, good.schema)
    run_task(own, [good], 0)  # its answer was lost: Spark asks again
    done = [run_task(own, [good], 0), run_task(own, [mixed(2)], 1)]
    with pytest.raises(BadRows, match="8 other rows are stored"):
        own.commit(list(done))


def test_a_task_that_will_fail_the_write_keeps_only_examples(
    durable_url: str, tmp_path: Path
) -> None:
    rows = mixed(60)
    options = {"bad_rows": "reject", "rejects": str(tmp_path / "rejects"), "rejects_max": "20"}
    own = writer(durable_url, rows.schema, **options)
    done = run_task(own, [rows.slice(0, 30), rows.slice(30)])
    assert (done.bad, len(done.kept)) == (30, 10)
    assert [row.row for row in done.kept] == list(range(0, 20, 2))


def test_tasks_together_keep_no_more_than_may_be_kept(
    durable_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has fewer bad rows than may be kept; what they bring to the driver is bounded for all of them."""
    monkeypatch.setattr(reject_count, "STEP_ROWS", 10)
    rows = mixed(60)
    options = {"bad_rows": "reject", "rejects": str(tmp_path / "rejects"), "rejects_max": "50"}
    own = writer(durable_url, rows.schema, **options)
    run_task(own, [rows], 0)  # its answer was lost: Spark asks again, and it counts once
    done = [run_task(own, [rows.slice(0, 30), rows.slice(30)], part) for part in range(3)]
    assert [one.bad for one in done] == [30, 30, 30]
    assert [len(one.kept) for one in done] == [30, 10, 10]
    with pytest.raises(BadRows, match="90 rows cannot be jobs"):
        own.commit(list(done))
    assert records(durable_url) == [], "nothing is left of the count"


def records(url: str) -> list[Record]:
    async def read() -> list[Record]:
        async with await connect(url) as manager:
            return list(await manager.store.records(reject_count.KIND))

    return asyncio.run(read())
