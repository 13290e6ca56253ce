"""One writer, group commit, and what becomes of callers that are cancelled, fail or come too late."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from headrace.errors import HeadraceError, InvalidCursor, StoreError, StoreUnavailable
from headrace.model import Priority
from headrace.stores.base import (
    ClaimRequest,
    Clash,
    EventQuery,
    Query,
)
from headrace.stores.sqlite import SqliteStore
from headrace.stores.sqlite.session import Transaction
from tests.stores.sqlite.samples import NOW, complete, insert, insertion, new_job, request, rows


class Hold:
    """A call that keeps the writer busy until it is told to go on."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()

    def __call__(self, tx: Transaction) -> None:
        self.has_begun.set()
        assert self.may_go_on.wait(10)


async def begin_hold(store: SqliteStore) -> tuple[Hold, asyncio.Task[None]]:
    hold = Hold()
    task = asyncio.create_task(store._write(hold))
    assert await asyncio.to_thread(hold.has_begun.wait, 10)
    return hold, task


async def test_writes_that_come_together_share_a_transaction(store: SqliteStore) -> None:
    before = store._writer.commits
    await asyncio.gather(*(insert(store, new_job()) for _ in range(100)))
    assert store._writer.commits - before < 20
    assert len(await store.find(Query(limit=1000))) == 100


async def test_a_write_in_a_group_that_fails_is_rolled_back_alone(store: SqliteStore) -> None:
    hold, held = await begin_hold(store)
    good = [asyncio.create_task(insert(store, new_job())) for _ in range(2)]
    # It has stored two lanes and two jobs before it finds an event too few.
    wrong = insertion([new_job(type="new"), new_job(type="new", priority=Priority.LOW)])
    bad = asyncio.create_task(store.insert(replace(wrong, events=wrong.events[:1])))
    good += [asyncio.create_task(insert(store, new_job(type="new"))) for _ in range(2)]
    clash = asyncio.create_task(store.insert(insertion([new_job(id="x"), new_job(id="x")])))
    await asyncio.sleep(0)
    before = store._writer.commits
    hold.may_go_on.set()
    await asyncio.gather(held, *good)
    with pytest.raises(StoreError, match="nothing of this call was written"):
        await bad
    assert await clash == Clash(ids=["x"])
    assert store._writer.commits - before == 2  # the hold, and the group
    assert len(await store.find(Query())) == 4
    # The lane that was rolled back is not remembered: its jobs are found by their own type.
    assert len(await store.find(Query(types=["new"]))) == 2
    events = await store.events(EventQuery())
    assert [event.seq for event in events] == [1, 2, 3, 4]


async def test_a_lone_write_that_fails_leaves_nothing(store: SqliteStore, path: Path) -> None:
    with pytest.raises(StoreError):
        await insert(store, new_job(type="new"), new_job(depth=-1))
    assert rows(path, "SELECT count(*) FROM lanes") == [(0,)]
    await insert(store, new_job(type="new"))
    assert [job.type for job in await store.find(Query())] == ["new"]


async def test_when_the_commit_fails_every_write_of_the_group_fails(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise sqlite3.OperationalError("disk I/O error")

    hold, held = await begin_hold(store)
    tasks = [asyncio.create_task(insert(store, new_job())) for _ in range(3)]
    await asyncio.sleep(0)
    with monkeypatch.context() as patched:
        patched.setattr(store._writer, "_commit", fail)
        hold.may_go_on.set()
        answers = await asyncio.gather(held, *tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreError] * 4
    assert await store.find(Query()) == []
    await insert(store, new_job())
    assert len(await store.find(Query())) == 1


async def test_a_full_disk_fails_the_write_and_nothing_else(store: SqliteStore) -> None:
    await insert(store, new_job())

    def limit(tx: Transaction) -> None:
        (pages,) = tx.connection.execute("PRAGMA page_count").fetchone()
        tx.connection.execute(f"PRAGMA max_page_count = {pages + 2}")

    await store._write(limit)
    with pytest.raises(StoreUnavailable, match="full"):
        await insert(store, *(new_job(payload_json=b"x" * 100_000) for _ in range(5)))
    assert len(await store.find(Query())) == 1
    await store._write(lambda tx: tx.connection.execute("PRAGMA max_page_count = 1000000"))
    await insert(store, *(new_job(payload_json=b"x" * 100_000) for _ in range(5)))
    assert len(await store.find(Query())) == 6


# --- cancellation --------------------------------------------------------------------------------


async def test_a_caller_that_gives_up_before_its_turn_is_passed_over(store: SqliteStore) -> None:
    hold, held = await begin_hold(store)
    given_up = asyncio.create_task(insert(store, new_job(id="given-up")))
    kept = asyncio.create_task(insert(store, new_job(id="kept")))
    await asyncio.sleep(0)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    hold.may_go_on.set()
    await asyncio.gather(held, kept)
    assert [job.id for job in await store.find(Query())] == ["kept"]


async def test_a_caller_that_gives_up_during_its_turn_leaves_a_whole_write(
    store: SqliteStore,
) -> None:
    reached, may_go_on = threading.Event(), threading.Event()
    wanted = insertion([new_job(), new_job()])

    def slowly(tx: Transaction) -> None:
        from headrace.stores.sqlite import insert

        insert.insert(tx, wanted)
        reached.set()
        assert may_go_on.wait(10)

    task = asyncio.create_task(store._write(slowly))
    assert await asyncio.to_thread(reached.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    may_go_on.set()
    await insert(store, new_job())
    assert len(await store.find(Query())) == 3
    assert len(await store.events(EventQuery())) == 3


async def test_cancelling_at_random_breaks_nothing(store: SqliteStore) -> None:
    for round_ in range(20):
        tasks = [asyncio.create_task(insert(store, new_job())) for _ in range(10)]
        await asyncio.sleep(0.0005 * (round_ % 4))
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    jobs = await store.find(Query(limit=1000))
    assert 100 <= len(jobs) <= 200
    assert [event.job_id for event in await store.events(EventQuery())] == [job.id for job in jobs]


# --- loops ---------------------------------------------------------------------------------------


def test_a_store_serves_loops_other_than_the_one_it_was_opened_on(path: Path) -> None:
    store = asyncio.run(SqliteStore.open(path))
    for _ in range(3):
        asyncio.run(insert(store, new_job()))
    found = asyncio.run(store.find(Query()))
    asyncio.run(store.close())
    assert len(found) == 3


def test_a_loop_that_is_closed_before_its_answer_comes_harms_nobody(path: Path) -> None:
    store = asyncio.run(SqliteStore.open(path))
    hold = Hold()

    async def leave_early() -> None:
        loop = asyncio.get_running_loop()
        for work in (hold, hold):
            loop.create_task(store._write(work))  # noqa: RUF006 - nobody is to wait for it
        assert await asyncio.to_thread(hold.has_begun.wait, 10)

    asyncio.run(leave_early())
    hold.may_go_on.set()
    asyncio.run(insert(store, new_job()))
    assert len(asyncio.run(store.find(Query()))) == 1
    asyncio.run(store.close())


# --- locks ---------------------------------------------------------------------------------------


async def test_a_write_waits_for_the_lock_of_another_process(path: Path) -> None:
    store = await SqliteStore.open(path, busy_timeout_seconds=5)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        task = asyncio.create_task(insert(store, new_job()))
        await asyncio.sleep(0.1)
        assert not task.done()
        assert await store.find(Query()) == []  # reading goes on
        other.execute("COMMIT")
        await task
    await store.close()


async def test_a_lock_that_stays_is_reported_and_nothing_is_written(path: Path) -> None:
    store = await SqliteStore.open(path, busy_timeout_seconds=0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="nothing was written"):
            await insert(store, new_job())
        other.execute("COMMIT")
    assert await store.find(Query()) == []
    await insert(store, new_job())
    await store.close()


async def test_a_batch_takes_few_statements(store: SqliteStore) -> None:
    """After each one another thread may take the interpreter, for 5 ms and more."""
    statements: list[str] = []

    async def trace(callback: Callable[[str], None] | None) -> None:
        await store._write(lambda tx: tx.connection.set_trace_callback(callback))

    await trace(statements.append)
    await insert(store, *(new_job(tags=("a", "b")) for _ in range(512)))
    claimed = await store.claim(request(512))
    await complete(store, claimed)
    await trace(None)
    assert len(claimed) == 512
    assert len(statements) < 200


# --- what callers may get wrong ------------------------------------------------------------------


async def test_a_value_that_sqlite_cannot_hold_is_a_store_error(store: SqliteStore) -> None:
    for wrong in (new_job(depth=2**70), new_job(type="\ud800")):
        with pytest.raises(StoreError):
            await insert(store, wrong)
    assert await store.find(Query()) == []


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", " 1", "\u0661"])
async def test_a_cursor_of_another_store_is_refused(store: SqliteStore, cursor: str) -> None:
    with pytest.raises(InvalidCursor):
        await store.events(EventQuery(after=cursor))
    with pytest.raises(InvalidCursor):
        await store.wait(cursor, 0)


async def test_a_cursor_beyond_everything_finds_nothing(store: SqliteStore) -> None:
    await insert(store, new_job())
    assert await store.events(EventQuery(after="9" * 30)) == []


async def test_only_headrace_errors_leave_a_reader(store: SqliteStore) -> None:
    with pytest.raises(HeadraceError):
        await store._read(lambda view: view.connection.execute("SELECT nonsense"))
    with pytest.raises(StoreError):
        await store._read(lambda view: view.connection.execute("DELETE FROM jobs"))
    assert isinstance(
        await store.claim(ClaimRequest(worker="w", now=NOW, limit=0, nonce="n")), list
    )
