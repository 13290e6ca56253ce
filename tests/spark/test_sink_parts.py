"""The parts of a write on every store: bad rows, all or nothing, and tasks that run twice."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headrace.crypto import VARIABLE, new_key
from headrace.errors import InvalidInput, InvalidKeyRing, QueueFull
from headrace.limits import QueueLimits
from headrace.manager import JobManager
from headrace.model import State
from headrace.spark.sink import staging
from headrace.spark.sink.failures import BadRows, RowsChanged
from headrace.spec import JobSpec
from tests.spark.writing import (
    events_of,
    halves,
    jobs_of,
    payloads,
    run_task,
    with_manager,
    write,
    writer,
)


def numbers(url: str) -> list[int]:
    return [job.payload["n"] for job in jobs_of(url)]


def test_rows_keep_their_order_and_are_claimable_at_once(durable_url: str) -> None:
    (done,) = write(durable_url, payloads(50), queue="q", priority="low")
    assert (done.created, done.repeated, done.bad, done.rows) == (50, 0, 0, 50)
    assert numbers(durable_url) == list(range(50))
    assert [event.job_id for event in events_of(durable_url)] == [
        f"w-00000-{number:09d}" for number in range(50)
    ]

    async def claim(manager: JobManager) -> list[int]:
        taken = await manager.claim("worker", queues=["q"], limit=10)
        return [job.payload["n"] for job in taken]

    assert with_manager(durable_url, claim) == list(range(10))


def test_a_task_that_runs_again_stores_nothing_twice(durable_url: str) -> None:
    rows = payloads(30, key=[f"k{n}" if n % 2 else None for n in range(30)])
    own = writer(durable_url, rows.schema)
    first = run_task(own, halves(rows))
    again = run_task(own, [rows])
    assert (first.created, first.repeated) == (30, 0)
    assert (again.created, again.repeated) == (0, 30)
    assert len(events_of(durable_url)) == 30


def test_a_task_that_died_half_way_is_completed_by_its_next_attempt(durable_url: str) -> None:
    rows = payloads(40)
    own = writer(durable_url, rows.schema, batch_size="10")

    def breaking() -> Iterator[pa.RecordBatch]:
        for start in range(0, 40, 10):
            if start == 30:
                raise OSError("the executor is gone")
            yield rows.slice(start, 10)

    with pytest.raises(OSError, match="gone"):
        run_task(own, breaking())
    stored = len(jobs_of(durable_url))
    assert 0 < stored <= 30
    done = run_task(own, [rows])
    assert (done.created, done.repeated) == (40 - stored, stored)
    assert sorted(numbers(durable_url)) == list(range(40))


def test_two_attempts_at_the_same_time_store_each_row_once(durable_url: str) -> None:
    rows = payloads(60, key=[f"k{n}" if n % 3 else None for n in range(60)])
    own = writer(durable_url, rows.schema, batch_size="7")
    with_manager(durable_url, _nothing)  # makes the store
    start = threading.Barrier(2)
    done = []

    def attempt() -> None:
        start.wait()
        done.append(run_task(own, [rows.slice(place, 6) for place in range(0, 60, 6)]))

    threads = [threading.Thread(target=attempt) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(one.created for one in done) == 60
    assert sum(one.repeated for one in done) == 60
    assert sorted(numbers(durable_url)) == list(range(60))


async def _nothing(manager: JobManager) -> None:
    await manager.store.now()


def test_a_key_is_held_as_everywhere(durable_url: str) -> None:
    async def before(manager: JobManager) -> None:
        await manager.submit(JobSpec(type="t", payload={"n": -1}, key="a"))

    with_manager(durable_url, before)
    rows = payloads(4, key=["a", "b", "b", None])
    (done,) = write(durable_url, rows)
    assert (done.created, done.repeated) == (2, 2)
    assert sorted(numbers(durable_url)) == [-1, 1, 3]
    (other,) = write(durable_url, rows, write_id="another")
    assert (other.created, other.repeated) == (1, 3)  # a row without a key is new in a new write


def test_a_key_given_up_makes_no_second_job_of_the_same_write(durable_url: str) -> None:
    rows = payloads(1, key=["a"])
    write(durable_url, rows)

    async def end(manager: JobManager) -> None:
        (job,) = await manager.claim("worker", limit=1)
        await manager.complete(job.id, job.token)

    with_manager(durable_url, end)
    (again,) = write(durable_url, rows)
    assert (again.created, again.repeated) == (0, 1)
    (new,) = write(durable_url, rows, write_id="another")
    assert new.created == 1


@pytest.mark.parametrize("atomic", ["false", "true"])
def test_a_key_may_be_held_whether_or_not_its_job_has_ended(durable_url: str, atomic: str) -> None:
    rows = payloads(2, key=["a", None])
    write(durable_url, rows, key_hold="24h", atomic=atomic)

    async def end(manager: JobManager) -> None:
        for job in await manager.claim("worker", limit=2):
            await manager.complete(job.id, job.token)

    with_manager(durable_url, end)
    (again,) = write(durable_url, rows, write_id="another")
    assert (again.created, again.repeated) == (1, 1)


def test_rows_in_another_order_are_told_not_lost(durable_url: str) -> None:
    rows = payloads(10)
    own = writer(durable_url, rows.schema)
    run_task(own, [rows.slice(0, 5)])
    with pytest.raises(RowsChanged, match="key"):
        run_task(own, [rows.take(list(reversed(range(10))))])
    assert numbers(durable_url) == list(range(5))


def bad_rows() -> pa.RecordBatch:
    """Fifteen of thirty rows cannot be jobs."""
    types = ["t" if n % 2 else "t" * 129 for n in range(30)]
    return payloads(30, type=types)


def test_bad_rows_fail_the_write_with_ten_examples(durable_url: str) -> None:
    with pytest.raises(BadRows) as told:
        write(durable_url, bad_rows(), batch_size="30")
    message = told.value.message
    assert message.startswith("15 rows cannot be jobs; nothing was stored")
    assert message.count("partition 0, row") == 10
    assert "row 18: the type has 129 characters, the limit is 128" in message
    assert "row 20" not in message
    assert '"payload":{"n":18}' in message
    assert jobs_of(durable_url) == []


def test_a_failed_write_says_what_is_stored(durable_url: str) -> None:
    good, bad = payloads(8, type=["t"] * 8), bad_rows()
    own = writer(durable_url, good.schema)
    done = [run_task(own, [good], 0), run_task(own, [bad], 1)]
    with pytest.raises(BadRows, match=r"8 other rows are stored.*write_id \(w\)"):
        own.commit(list(done))
    assert len(jobs_of(durable_url)) == 8


@pytest.mark.parametrize("atomic", ["true", "false"])
def test_bad_rows_go_to_the_rejects_table_once(
    durable_url: str, tmp_path: Path, atomic: str
) -> None:
    path = str(tmp_path / "deep" / "rejects")
    options = {"bad_rows": "reject", "rejects": path, "atomic": atomic}
    for _ in range(2):
        write(durable_url, bad_rows(), **options)
        assert sorted(numbers(durable_url)) == list(range(1, 30, 2))
        kept = DeltaTable(path).to_pyarrow_table().sort_by("row").to_pylist()
        assert [row["row"] for row in kept] == list(range(0, 30, 2))
        assert {(row["write_id"], row["partition"], row["code"]) for row in kept} == {
            ("w", 0, "INVALID_NAME")
        }
        assert kept[1]["data"].startswith('{"payload":{"n":2},"type":"ttt')
    write(durable_url, payloads(2, type=["u", " "]), **options, write_id="second")
    kept = DeltaTable(path).to_pyarrow_table().to_pylist()
    assert len(kept) == 16


def test_too_many_rejects_fail_the_write(durable_url: str, tmp_path: Path) -> None:
    path = str(tmp_path / "rejects")
    with pytest.raises(BadRows, match="15 rows cannot be jobs"):
        write(durable_url, bad_rows(), bad_rows="reject", rejects=path, rejects_max="14")
    assert not DeltaTable.is_deltatable(path)


def test_all_or_nothing(durable_url: str) -> None:
    good, bad = payloads(8, type=["t"] * 8), bad_rows()
    own = writer(durable_url, good.schema, atomic="true")
    done = [run_task(own, [good], 0), run_task(own, [bad], 1)]
    assert jobs_of(durable_url) == []
    with pytest.raises(BadRows, match="nothing was stored"):
        own.commit(list(done))
    own.abort(list(done))
    assert jobs_of(durable_url) == []
    # Tried again without the bad part, one task twice: only the attempt that Spark names counts.
    run_task(own, [good.slice(0, 3)], 0)
    own.commit([run_task(own, [good], 0), run_task(own, [good], 1)])
    assert numbers(durable_url) == [*range(8), *range(8)]
    own.commit([run_task(own, [good], 0), run_task(own, [good], 1)])
    assert len(jobs_of(durable_url)) == 16


def test_all_or_nothing_with_keys_tags_and_dependencies(durable_url: str) -> None:
    async def before(manager: JobManager) -> str:
        return (await manager.submit(JobSpec(type="first", payload={"n": -1}))).job.id

    first = with_manager(durable_url, before)
    rows = payloads(
        4,
        key=["a", None, "a", None],
        tags=pa.array([["x"], None, ["x"], ["x", "y"]], pa.list_(pa.string())),
        after=pa.array([None, [first], None, None], pa.list_(pa.string())),
    )
    write(durable_url, rows, atomic="true")
    found = {job.payload["n"]: job for job in jobs_of(durable_url)}
    assert sorted(found) == [-1, 0, 1, 3]
    assert found[1].state is State.BLOCKED
    assert found[0].key == "a"
    assert found[3].tags == ("x", "y")


def test_too_much_for_one_step_is_refused(
    durable_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "BATCH_JOBS_MAX", 20)
    rows = payloads(15)
    own = writer(durable_url, rows.schema, atomic="true")
    done = [run_task(own, [rows], part) for part in range(2)]
    if durable_url.startswith("postgresql"):
        own.commit(list(done))
        assert len(jobs_of(durable_url)) == 30
    else:
        with pytest.raises(InvalidInput, match=r"at most 20 rows.*nothing was stored"):
            own.commit(list(done))
        assert jobs_of(durable_url) == []


def test_a_dependency_that_is_not_there_is_a_bad_row(durable_url: str, tmp_path: Path) -> None:
    rows = payloads(9, after=[None, *["nowhere"] * 2, *[None] * 6])
    with pytest.raises(BadRows, match="which was not found"):
        write(durable_url, rows)
    path = str(tmp_path / "rejects")
    (done,) = write(durable_url, rows, bad_rows="reject", rejects=path, write_id="v")
    assert done.bad == 2
    assert done.created == 7


def test_a_row_may_wait_for_one_that_stands_before_it(durable_url: str) -> None:
    first, second = "w-00000-000000000", "w-00000-000000001"
    rows = payloads(5, after=[None, first, None, second, first])
    (done,) = write(durable_url, rows)
    assert (done.created, done.bad) == (5, 0)
    states = {job.payload["n"]: job.state for job in jobs_of(durable_url)}
    assert [states[n] for n in range(5)] == [
        State.PENDING, State.BLOCKED, State.PENDING, State.BLOCKED, State.BLOCKED,
    ]  # fmt: skip
    (again,) = write(durable_url, rows)
    assert (again.created, again.repeated) == (0, 5)


def test_encrypted_stores_take_rows_and_nobody_reads_them_there(
    durable_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, new_key("one"))
    rows = payloads(5)
    for atomic in ("false", "true"):
        write(durable_url, rows, atomic=atomic, write_id=atomic)
    own = writer(durable_url, rows.schema)
    monkeypatch.delenv(VARIABLE)
    assert all(job.is_sealed for job in jobs_of(durable_url))
    assert len(jobs_of(durable_url)) == 10
    with pytest.raises(InvalidKeyRing, match=r"key one.*no key.*executorEnv"):
        run_task(own, [rows])


def test_the_rules_of_an_application_hold(
    durable_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"sink_app_{next(_NUMBERS)}"
    (tmp_path / f"{name}.py").write_text(
        "from headrace import Headrace, Policies, Policy\n"
        "from headrace.policy import IdSource\n"
        "app = Headrace('memory:', tenant='acme', policies=Policies(queues={'q': Policy(\n"
        "    max_attempts=9, payload_bytes_max=8, ids=IdSource.SERVER)}))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadRows, match="the payload is 9 bytes, the limit is 8"):
        write(durable_url, payloads(200), app=f"{name}:app", queue="q", batch_size="50")
    (done,) = write(durable_url, payloads(90), app=f"{name}:app", queue="q", write_id="v")
    assert done.created + done.repeated == 90
    job = jobs_of(durable_url)[-1]
    assert (job.tenant, job.max_attempts) == ("acme", 9)
    with pytest.raises(BadRows, match="tenant 'other', which is not the caller's"):
        write(durable_url, payloads(1, tenant=["other"]), app=f"{name}:app", write_id="u")


_NUMBERS = itertools.count()


def test_a_queue_that_counts_what_waits_stays_within_its_limit(durable_url: str) -> None:
    async def limit(manager: JobManager) -> None:
        await manager.set_limits("q", QueueLimits(waiting_jobs_max=20))

    with_manager(durable_url, limit)
    with pytest.raises(QueueFull, match="20 jobs"):
        write(durable_url, payloads(30), queue="q")
    assert len(jobs_of(durable_url)) <= 20
