"""Blocks: a search looks at no more rows than its type, queue or worker has jobs near."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from headrace.stores.base import Commit, Query
from headrace.stores.redis import RedisStore
from headrace.stores.redis.connection import Argument
from tests.stores.redis.consistency import BLOCK_JOBS, check
from tests.stores.redis.jobs import completion, draft, insert, request

JOBS = 6000


class Looks:
    """How many rows the server has looked at for searches."""

    def __init__(self, store: RedisStore, patch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        self.calls = 0
        read_script = store._server.read_script

        async def counted(script: Any, *arguments: Argument) -> Any:
            answer = await read_script(script, *arguments)
            if script.name == "scan":
                self.calls += 1
                self.rows += answer[2]
            return answer

        patch.setattr(store._server, "read_script", counted)

    async def at(self, store: RedisStore, query: Query) -> tuple[Sequence[str], int]:
        self.rows = 0
        return [job.id for job in await store.find(query)], self.rows


async def test_a_search_by_type_or_worker_passes_over_blocks_without(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest type is the farthest from where a listing begins, and a rare one is anywhere."""
    rare = {700, 4000, 4001}
    for first in range(0, JOBS, 1000):
        await insert(
            store,
            *(
                draft(
                    id=f"j{n:04}",
                    type="rare" if n in rare else "old" if n < JOBS // 3 else "new",
                    priority=1 if n % 50 == 7 else 2,
                )
                for n in range(first, first + 1000)
            ),
        )
    (held,) = await store.claim(request(1, types=["rare"]))
    assert all((await store.commit(Commit(changes=[completion(held)]))).applied)
    every = [job.id for job in await store.find(Query(limit=10_000))]
    looks = Looks(store, monkeypatch)
    newest: dict[str, Any] = {"newest_first": True, "limit": 20}

    found, rows = await looks.at(store, Query(types=["old"], **newest))
    assert found == [one for one in reversed(every) if int(one[1:]) < JOBS // 3][:20]
    assert rows <= 2 * BLOCK_JOBS
    found, rows = await looks.at(store, Query(types=["rare"], **newest))
    assert found == ["j4001", "j4000", "j0700"]
    assert rows <= 2 * BLOCK_JOBS
    found, rows = await looks.at(store, Query(types=["rare"], limit=20))
    assert (found[0], len(found)) == ("j0700", 3)
    assert rows <= 2 * BLOCK_JOBS
    found, rows = await looks.at(store, Query(assignee="w1", **newest))
    assert (found, rows <= BLOCK_JOBS) == ([held.id], True)
    assert await looks.at(store, Query(assignee="nobody", **newest)) == ([], 0)
    assert await looks.at(store, Query(types=["nothing"], **newest)) == ([], 0)
    assert looks.calls <= 6, "one call each"
    await check(store)


async def test_a_block_of_very_many_workers_is_said_to_be_of_any(store: RedisStore) -> None:
    await insert(store, *(draft(id=f"j{n}") for n in range(200)))
    for n in range(200):
        name = f"a worker with a long name, number {n}"
        (job,) = await store.claim(replace(request(), worker=name))
        assert (await store.find(Query(assignee=name))) == [job]
    await check(store)
    entries = await store._server.read("HVALS", store._server.keys.of("blocks"))
    assert max(map(len, entries)) < 5000


async def test_blocks_go_with_their_jobs(store: RedisStore) -> None:
    jobs = await insert(store, *(draft() for _ in range(3 * BLOCK_JOBS)))
    await store.delete({job.id: job.version for job in jobs[BLOCK_JOBS:]})
    await check(store)
    await store.delete({job.id: job.version for job in jobs[:BLOCK_JOBS]})
    assert await store._server.read("EXISTS", store._server.keys.of("blocks")) == 0
    await check(store)
