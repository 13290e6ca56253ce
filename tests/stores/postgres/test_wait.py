"""Waiting for news: woken at once here, by a hint elsewhere, and by polling when hints are lost."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import pytest

from headrace.stores.postgres import PostgresStore, wait
from headrace.stores.postgres import insert as insertions
from headrace.stores.postgres.wait import Hints
from tests.stores.postgres.connections import end_all
from tests.stores.postgres.jobs import draft, insert
from tests.stores.postgres.server import without_schema

WAIT_SECONDS = 10.0


async def _listen(store: PostgresStore) -> None:
    """The first wait begins to listen, and returns when it does; later ones return for a reason."""
    await store.wait(await store.tail(), WAIT_SECONDS)


async def _woken_after(store: PostgresStore, writer: PostgresStore) -> float:
    """How long the store waited for a job that the writer inserts a little later."""
    before = await store.tail()
    writing = asyncio.create_task(_soon(writer))
    start = time.monotonic()
    await store.wait(before, WAIT_SECONDS)
    seconds = time.monotonic() - start
    assert await store.tail() != before, "it returned before there was news"
    await writing
    return seconds


async def _soon(store: PostgresStore) -> None:
    await asyncio.sleep(0.2)
    await insert(store, draft())


async def test_the_own_process_wakes_at_once(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without polling, and without a notification from itself."""
    monkeypatch.setattr(wait, "POLL_SECONDS", 60.0)
    await _listen(store)

    async def tell_nobody() -> None: ...

    monkeypatch.setattr(store._listening, "_notify", tell_nobody)
    monkeypatch.setattr(store._listening, "with_write", lambda: None)
    assert await _woken_after(store, store) < 5


async def test_another_process_is_told(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With polling put out of the way: only the notification can wake it."""
    monkeypatch.setattr(wait, "POLL_SECONDS", 60.0)
    await _listen(store)
    other = await PostgresStore.open(postgres_url)
    assert await _woken_after(store, other) < 5
    await other.close()


async def test_an_insertion_tells_in_its_own_commit(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first at once, those that follow soon after in the background, with all that came meanwhile."""
    monkeypatch.setattr(wait, "POLL_SECONDS", 60.0)
    monkeypatch.setattr(wait, "NOTIFY_PAUSE_SECONDS", 60.0)
    await _listen(store)
    other = await PostgresStore.open(postgres_url)
    assert await _woken_after(store, other) < 5
    assert other._listening._notifier is None
    await insert(other, draft())
    assert other._listening._notifier is not None
    await other.close()


@pytest.mark.parametrize("copied_min", [2, 10**9])
async def test_many_at_once_tell_in_their_commit_too(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch, copied_min: int
) -> None:
    monkeypatch.setattr(wait, "POLL_SECONDS", 60.0)
    monkeypatch.setattr(insertions, "COPIED_MIN", copied_min)
    await _listen(store)
    other = await PostgresStore.open(postgres_url)
    before = await store.tail()
    waiting = asyncio.create_task(store.wait(before, WAIT_SECONDS))
    await asyncio.sleep(0.2)
    start = time.monotonic()
    await insert(other, draft(), draft())
    assert other._listening._notifier is None
    await waiting
    assert time.monotonic() - start < 5
    await other.close()


async def test_without_hints_polling_finds_it(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _listen(store)
    other = await PostgresStore.open(postgres_url)
    monkeypatch.setattr(other, "_hints", wait.NoHints())
    assert await _woken_after(store, other) < 5
    await other.close()


async def test_what_happened_already_is_not_waited_for(store: PostgresStore) -> None:
    await insert(store, draft())
    start = time.monotonic()
    await store.wait("", 10)
    assert time.monotonic() - start < 2


async def test_a_wait_ends_with_its_timeout(store: PostgresStore) -> None:
    await _listen(store)
    start = time.monotonic()
    await store.wait(await store.tail(), 0.2)
    assert 0.15 < time.monotonic() - start < 3


async def test_many_writes_make_few_notifications(store: PostgresStore, postgres_url: str) -> None:
    heard: list[float] = []
    listener = await asyncpg.connect(without_schema(postgres_url))
    await listener.add_listener(
        f"headrace_{store._sql.schema}", lambda *_: heard.append(time.monotonic())
    )
    start = time.monotonic()
    await asyncio.gather(*(insert(store, draft()) for _ in range(200)))
    await asyncio.sleep(3 * wait.NOTIFY_PAUSE_SECONDS)
    seconds = time.monotonic() - start
    await listener.close()
    assert 1 <= len(heard) <= seconds / wait.NOTIFY_PAUSE_SECONDS + 1
    assert len(heard) < 200


async def test_the_listener_comes_back_after_it_was_cut_off(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait, "POLL_SECONDS", 60.0)
    await _listen(store)
    await end_all(store, postgres_url)
    await asyncio.sleep(0.5)
    other = await PostgresStore.open(postgres_url)
    assert await _woken_after(store, other) < 5
    await other.close()


class SlowSession:
    """Counts what is sent, and answers when it is told to."""

    is_callers = False

    def __init__(self) -> None:
        self.sent = 0
        self.answer = asyncio.Event()

    async def write(self, *_: object) -> list[tuple[object, ...]]:
        self.sent += 1
        await self.answer.wait()
        return []

    read = write


async def test_the_pause_between_notifications_counts_from_the_sending() -> None:
    """Not from the answer: a program whose loop stands still between its calls reads that much later,
    and would then put off the next hint until its loop runs again, which may be long after."""
    session = SlowSession()
    told = Hints(None, session, "here")  # type: ignore[arg-type]  # it only sends
    told.wrote()
    await asyncio.sleep(2 * wait.NOTIFY_PAUSE_SECONDS)
    session.answer.set()
    told.wrote()
    for _ in range(5):  # no time passes
        await asyncio.sleep(0)
    assert session.sent == 2
    told.wrote()
    for _ in range(5):
        await asyncio.sleep(0)
    assert session.sent == 2  # it is too soon
    await told.close()
    assert session.sent == 3
