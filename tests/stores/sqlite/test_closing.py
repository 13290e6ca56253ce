"""Closing: what was begun is finished, whoever waits is let go, and nothing works afterwards."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import StoreClosed
from headrace.stores.base import (
    Commit,
    EventQuery,
    Fence,
    KeyScope,
    Note,
    Pause,
    Query,
    Record,
    WorkerSeen,
)
from headrace.stores.sqlite import SqliteStore
from tests.stores.sqlite.samples import NOW, insert, insertion, new_job, request, rows


def threads() -> set[threading.Thread]:
    """Those of stores: of this test's own, and of whoever ran before it in this process."""
    return {one for one in threading.enumerate() if one.name.startswith("headrace-sqlite")}


async def test_closing_finishes_what_was_begun(path: Path) -> None:
    before = threads()
    store = await SqliteStore.open(path)
    tasks = [asyncio.create_task(insert(store, new_job())) for _ in range(50)]
    await asyncio.sleep(0)
    await asyncio.gather(store.close(), store.close())
    await store.close()
    answers = await asyncio.gather(*tasks)
    assert rows(path, "SELECT count(*) FROM jobs") == [(len(answers),)]
    assert not threads() - before


async def test_a_waiting_caller_is_let_go_by_closing(path: Path) -> None:
    store = await SqliteStore.open(path)
    task = asyncio.create_task(store.wait("", 30))
    await asyncio.sleep(0.05)
    await store.close()
    await asyncio.wait_for(task, 1)


VERBS: dict[str, Callable[[SqliteStore], Awaitable[Any]]] = {
    "now": lambda store: store.now(),
    "schema_version": lambda store: store.schema_version(),
    "insert": lambda store: store.insert(insertion([new_job()])),
    "claim": lambda store: store.claim(request()),
    "heads": lambda store: store.heads(request()),
    "claim_shares": lambda store: store.claim_shares(request(), [], []),
    "next_due": lambda store: store.next_due(request()),
    "commit": lambda store: store.commit(Commit(changes=[])),
    "extend": lambda store: store.extend({}, NOW),
    "annotate": lambda store: store.annotate(Fence("a", "b"), Note(), NOW),
    "rewrite": lambda store: store.rewrite([]),
    "update": lambda store: store.update([]),
    "delete": lambda store: store.delete({}),
    "get": lambda store: store.get(["a"]),
    "find": lambda store: store.find(Query()),
    "lapsed": lambda store: store.lapsed(NOW, 1),
    "outlived": lambda store: store.outlived(NOW, 1),
    "keyed": lambda store: store.keyed([KeyScope("a", "b", "c", "d")], NOW),
    "count": lambda store: store.count(NOW),
    "held": lambda store: store.held(NOW, ["a"]),
    "backlog": lambda store: store.backlog(),
    "edges": lambda store: store.edges(parent_id="a"),
    "joins": lambda store: store.joins(["a"]),
    "spawned": lambda store: store.spawned("a"),
    "unseen": lambda store: store.unseen(1),
    "pause": lambda store: store.pause(Pause("a", None, NOW)),
    "resume": lambda store: store.resume("a", None),
    "pauses": lambda store: store.pauses(),
    "announce": lambda store: store.announce(WorkerSeen(worker="a", seen_at=NOW)),
    "workers": lambda store: store.workers(NOW),
    "records": lambda store: store.records("a"),
    "put_record": lambda store: store.put_record(Record(kind="a", name="b")),
    "delete_record": lambda store: store.delete_record(Record(kind="a", name="b")),
    "events": lambda store: store.events(EventQuery()),
    "tail": lambda store: store.tail(),
    "trim": lambda store: store.trim([""], datetime(2026, 1, 1, tzinfo=UTC), 1),
    "diagnose": lambda store: store.diagnose(),
    "wait": lambda store: store.wait("", 0),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_every_verb_of_a_closed_store_says_so(path: Path, verb: str) -> None:
    store = await SqliteStore.open(path)
    await VERBS[verb](store)
    await store.close()
    with pytest.raises(StoreClosed):
        await VERBS[verb](store)


def test_no_verb_is_missing_above() -> None:
    verbs = {name for name in vars(SqliteStore) if not name.startswith("_")}
    assert verbs - set(VERBS) == {"capabilities", "open", "close"}


async def test_a_store_whose_opening_was_given_up_is_given_back(path: Path) -> None:
    before = threads()
    task = asyncio.create_task(SqliteStore.open(path))
    await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(200):
        await asyncio.sleep(0.01)
        if path.parent.exists() and [file.name for file in path.parent.iterdir()] == [path.name]:
            break
    assert not threads() - before
