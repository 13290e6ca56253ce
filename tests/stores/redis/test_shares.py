"""Claims by shares in Lua: lanes that come up again, bounded steps, and gates that move only with a claim."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.errors import StoreCorrupt
from headrace.model import State
from headrace.stores.base import GATE, Head, Query, Record, Share
from headrace.stores.redis import RedisStore
from headrace.stores.redis.rows import handle_of
from tests.stores.redis.consistency import check
from tests.stores.redis.jobs import NOW, draft, insert, request


def share(jobs: int, limit_key: str | None = None) -> Share:
    return Share(
        tenant="default", queue="default", type="send", priority=2, limit_key=limit_key, jobs=jobs
    )


async def _gated(store: RedisStore) -> Record:
    assert await store.put_record(Record(kind=GATE, name="default"))
    (gate,) = await store.records(GATE)
    return gate


async def test_a_lane_may_have_several_shares(store: RedisStore) -> None:
    """As who shares between customers in turn would write it down."""
    a = [job.id for job in await insert(store, *(draft(limit_key="a") for _ in range(5)))]
    b = [job.id for job in await insert(store, *(draft(limit_key="b") for _ in range(5)))]
    turns = [
        share(1, "a"),
        share(2, "b"),
        share(2, "a"),
        share(0, "a"),
        share(9, "b"),
        share(9, "a"),
    ]
    claimed = await store.claim_shares(request(9), turns, [])
    assert claimed is not None
    assert [job.id for job in claimed] == [a[0], *b[:2], *a[1:3], *b[2:], a[3]]
    assert [job.id for job in await store.claim(request(9))] == [a[4]]
    await check(store)


async def test_a_lane_that_comes_short_leaves_its_room_to_the_next(store: RedisStore) -> None:
    await insert(store, draft(limit_key="a"))
    b = [job.id for job in await insert(store, *(draft(limit_key="b") for _ in range(5)))]
    claimed = await store.claim_shares(request(4), [share(4, "a"), share(4, "b")], [])
    assert claimed is not None
    assert [job.id for job in claimed[1:]] == b[:3]


async def test_a_lane_is_merged_from_all_who_wait_in_it(store: RedisStore) -> None:
    """Retried and lost jobs stand in lines of their own; the lane's order is over all of them."""
    for name, state, seconds in (
        ("a", State.PENDING, 7),
        ("b", State.RETRYING, 9),
        ("c", State.LOST, 8),
        ("d", State.PENDING, 10),
    ):
        await insert(store, draft(id=name, state=state, run_at=NOW - timedelta(seconds=seconds)))
    (head,) = await store.heads(request(3))
    assert (head.jobs, head.run_at) == (3, NOW - timedelta(seconds=10))
    claimed = await store.claim_shares(request(9), [share(9)], [])
    assert claimed is not None
    assert [job.id for job in claimed] == ["d", "b", "c", "a"]


async def test_tags_that_never_meet_are_searched_in_bounded_steps(store: RedisStore) -> None:
    # More jobs than one call looks at have each tag, and only the last few have both.
    await insert(
        store,
        *(draft(tags=("one",)) for _ in range(11_000)),
        *(draft(tags=("two",)) for _ in range(11_000)),
    )
    gate = await _gated(store)
    both = request(5, tags=("one", "two"))
    assert await store.heads(both) == []
    assert await store.claim_shares(both, [share(1, "none"), share(5)], [gate]) == []
    jobs = await insert(store, *(draft(tags=("one", "two")) for _ in range(3)))
    (head,) = await store.heads(both)
    assert head.jobs == 3
    (gate,) = await store.records(GATE)
    assert gate.version == 2, "a call that only looked has moved the gate"
    claimed = await store.claim_shares(both, [share(1, "none"), share(5)], [gate])
    assert claimed is not None
    assert [job.id for job in claimed] == [job.id for job in jobs]
    (gate,) = await store.records(GATE)
    assert gate.version == 3


async def test_more_lanes_than_one_call_looks_at(store: RedisStore) -> None:
    keys = [f"c{n}" for n in range(10_500)]
    for start in range(0, len(keys), 3500):
        await insert(store, *(draft(limit_key=key) for key in keys[start : start + 3500]))
    heads = await store.heads(request(3))
    assert sorted(str(head.limit_key) for head in heads) == sorted(keys)
    assert {head.jobs for head in heads} == {1}
    assert isinstance(heads[0], Head)


async def test_damage_leaves_the_gate_alone(store: RedisStore) -> None:
    (job,) = await insert(store, draft())
    gate = await _gated(store)
    await store._server.write("HDEL", store._server.keys.of("rows"), handle_of(job.seq))
    with pytest.raises(StoreCorrupt, match="nothing was written"):
        await store.claim_shares(request(), [share(1)], [gate])
    assert await store.records(GATE) == [gate]


async def test_gates_of_no_queue_hide_none(store: RedisStore) -> None:
    """What tells a paused queue of one tenant apart is a line break: no gate may be taken for it."""
    await insert(store, draft())
    assert await store.put_record(Record(kind=GATE, name="default\ndefault"))
    assert len(await store.claim(request())) == 1
    assert len(await store.find(Query())) == 1
