"""The claim in Lua: equal to the pure rule, bounded in what it looks at, flat in what it costs."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from headrace import lifecycle
from headrace.model import Category, Failure, Job, State
from headrace.stores.base import GATE, Commit, EventQuery, Pause, Record
from headrace.stores.redis import RedisStore
from tests.stores.redis.jobs import NOW, completion, draft, insert, request


def _random_job(dice: random.Random, number: int) -> Job:
    """Any waiting job, with whatever past, at microseconds that do not look round."""

    def moment(low: int, high: int) -> datetime:
        return NOW + timedelta(microseconds=dice.randint(low, high))

    def maybe(value: Any) -> Any:
        return value if dice.random() < 0.5 else None

    ran = dice.random() < 0.6
    return draft(
        id=f"job-{number}-{dice.getrandbits(40)}",
        tenant=dice.choice(["default", "acme", "größe"]),
        queue=dice.choice(["default", 'q"uote', "b\\ack"]),
        type=dice.choice(["send", "日本"]),
        tags=tuple(sorted(dice.sample(["a", "b=1", "ü"], dice.randint(0, 3)))),
        priority=dice.randint(0, 4),
        payload_json=b'{"n":%d}' % number,
        state=dice.choice([State.PENDING, State.RETRYING, State.LOST]),
        version=dice.randint(1, 2**20),
        run_at=moment(-(10**12), 0),
        updated_at=moment(-(10**12), 10**6),  # a clock that was set back
        attempt=dice.randint(0, 1000) if ran else 0,
        failures=dice.randint(0, 20) if ran else 0,
        losses=dice.randint(0, 20) if ran else 0,
        lease_seconds=dice.choice([None, 30.0, 0.1234567, 1e-6, 3.3333335]),
        assignee=maybe("an earlier wörker") if ran else None,
        assigned_at=maybe(moment(-(10**12), 0)) if ran else None,
        scheduled_at=maybe(moment(-(10**12), 0)) if ran else None,
        started_at=maybe(moment(-(10**12), 0)) if ran else None,
        last_failed_at=maybe(moment(-(10**12), 0)) if ran else None,
        failure=maybe(Failure("broke", Category.TIMEOUT, maybe("E1"))) if ran else None,
        result_json=maybe(b"[1]") if ran else None,
        progress=maybe(0.1) if ran else None,
        progress_note=maybe("häl\nf") if ran else None,
        checkpoint_json=maybe(b'{"at":1}') if ran else None,
    )


@pytest.mark.parametrize("seed", range(4))
async def test_a_claim_writes_what_the_lifecycle_says(store: RedisStore, seed: int) -> None:
    dice = random.Random(seed)
    now = datetime(2026, 1, 1, 0, 0, 1, 7, tzinfo=UTC)
    jobs = await insert(store, *(_random_job(dice, number) for number in range(100)))
    expected = sorted(jobs, key=lambda job: (job.priority, job.run_at, job.seq))
    lease_seconds = dice.choice([None, 7.7777777])
    after = await store.tail()
    claimed = await store.claim(request(100, now, lease_seconds=lease_seconds))
    command = lifecycle.Claim(worker="w1", nonce="nonce", lease_seconds=lease_seconds)
    changes = [lifecycle.apply(job, command, now) for job in expected]
    assert list(claimed) == [change.after for change in changes]
    assert await store.get([job.id for job in claimed]) == {job.id: job for job in claimed}
    events = [
        msgspec.structs.replace(event, seq=0, cursor="")
        for event in await store.events(EventQuery(after=after))
    ]
    assert events == [change.event for change in changes]


async def test_tags_that_never_meet_are_searched_in_bounded_steps(store: RedisStore) -> None:
    # More jobs than one call looks at have each tag, and only the last few have both.
    await insert(
        store,
        *(draft(tags=("one",)) for _ in range(11_000)),
        *(draft(tags=("two",)) for _ in range(11_000)),
    )
    assert await store.claim(request(5, tags=("one", "two"))) == []
    both = await insert(store, *(draft(tags=("one", "two")) for _ in range(3)))
    claimed = await store.claim(request(5, tags=("one", "two")))
    assert [job.id for job in claimed] == [job.id for job in both]


async def test_a_claim_larger_than_one_call_keeps_the_order(store: RedisStore) -> None:
    jobs = await insert(store, *(draft(priority=4 - n % 5) for n in range(2500)))
    claimed = await store.claim(request(2300))
    expected = sorted(jobs, key=lambda job: (job.priority, job.seq))[:2300]
    assert [job.id for job in claimed] == [job.id for job in expected]


async def _commands_of_a_claim(store: RedisStore, **filters: Any) -> tuple[int, int]:
    """(jobs leased, commands the server carried out for it): a cost that no other load can blur."""

    async def carried_out() -> int:
        text = (await store._server.read("INFO", "commandstats")).decode()
        return sum(int(line.split("calls=")[1].split(",")[0]) for line in text.splitlines()[1:])

    before = await carried_out()
    claimed = await store.claim(request(10, **filters))
    cost = await carried_out() - before
    await store.commit(Commit(changes=[completion(job) for job in claimed]))
    return len(claimed), cost


async def test_the_cost_of_a_claim_does_not_grow_with_the_jobs_waiting(store: RedisStore) -> None:
    await insert(store, *(draft(tags=("rare",)) for _ in range(15)))
    few = await _commands_of_a_claim(store)
    await insert(store, *(draft(tags=("common",)) for _ in range(20_000)))
    future = NOW + timedelta(hours=1)
    await insert(store, *(draft(priority=0, run_at=future) for _ in range(20_000)))
    many = await _commands_of_a_claim(store)
    assert few[0] == many[0] == 10
    assert many[1] <= few[1] + 5, "jobs of another tag or not yet due cost a claim something"
    await insert(store, *(draft(tags=("rare",)) for _ in range(15)))
    rare = await _commands_of_a_claim(store, tags=("rare",))
    assert rare[0] == 10
    assert rare[1] <= few[1] * 2


async def test_many_lanes_that_are_not_asked_for_cost_nothing(store: RedisStore) -> None:
    await insert(store, *(draft() for _ in range(15)))
    few = await _commands_of_a_claim(store, queues=("default",), tenant="default")
    await insert(store, *(draft(tenant=f"t{n}", queue=f"q{n % 7}") for n in range(2000)))
    await insert(store, *(draft(queue=f"q{n}") for n in range(2000)))
    await insert(store, *(draft() for _ in range(15)))
    many = await _commands_of_a_claim(store, queues=("default",), tenant="default")
    assert (few[0], many[0]) == (10, 10)
    assert many[1] <= few[1] + 2


async def test_lanes_without_waiting_jobs_cost_nothing(store: RedisStore) -> None:
    await insert(store, *(draft() for _ in range(40)))
    few = await _commands_of_a_claim(store)
    customers = [draft(limit_key=f"c{n}", priority=n % 5) for n in range(5000)]
    await insert(store, *customers)
    drained = await store.claim(request(len(customers)))
    await store.commit(Commit(changes=[completion(job) for job in drained]))
    future = NOW + timedelta(hours=1)
    await insert(store, *(draft(limit_key=f"d{n}", priority=0, run_at=future) for n in range(5000)))
    await insert(store, *(draft() for _ in range(40)))
    many = await _commands_of_a_claim(store)
    assert (few[0], many[0]) == (10, 10)
    assert many[1] <= few[1] + 2


async def test_lanes_with_waiting_jobs_cost_as_much_as_is_taken_from_them(
    store: RedisStore,
) -> None:
    """All due at the same time, as when one batch brings jobs of many customers."""
    await insert(store, *(draft(limit_key=f"c{n}") for n in range(20)))
    few = await _commands_of_a_claim(store)
    await insert(store, *(draft(limit_key=f"c{n}") for n in range(3000)))
    many = await _commands_of_a_claim(store)
    assert (few[0], many[0]) == (10, 10)
    assert many[1] <= few[1] + 10


@pytest.mark.parametrize("shut", ["gated", "paused"])
async def test_queues_that_are_passed_over_cost_nothing(store: RedisStore, shut: str) -> None:
    await insert(store, *(draft(queue="open") for _ in range(40)))
    await insert(store, draft(queue="shut", priority=0))
    if shut == "gated":
        assert await store.put_record(Record(kind=GATE, name="shut"))
    else:
        await store.pause(Pause("shut", None, NOW))
    few = await _commands_of_a_claim(store)
    await insert(
        store, *(draft(queue="shut", limit_key=f"c{n}", priority=n % 5) for n in range(3000))
    )
    many = await _commands_of_a_claim(store)
    asked = await _commands_of_a_claim(store, queues=("open", "shut"))
    assert (few[0], many[0], asked[0]) == (10, 10, 10)
    assert many[1] <= few[1] + 2
    assert asked[1] <= few[1] + 10
