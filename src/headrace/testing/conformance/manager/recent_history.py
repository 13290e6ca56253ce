"""Recent history: the log rolled up into minutes, hours and error groups, each event counted once."""

from __future__ import annotations

from datetime import datetime, timedelta

from headrace import errors
from headrace.manager import JobManager
from headrace.manager.rollups import HOUR, MINUTE
from headrace.model import Category
from headrace.policy import Policies, Policy
from headrace.rollups import COUNTED, Counts
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import submit, suite

POLICY = Policy(lease_seconds=10.0, max_attempts=2)


def _told(counts: Counts) -> dict[str, int]:
    return {name: count for name in COUNTED if (count := getattr(counts, name))}


async def _day(env: Env, manager: JobManager) -> datetime:
    """Two jobs that complete, one that dies of two errors, one whose worker vanishes, on two queues."""
    begin = env.clock.now()
    for name, queue in (("a", "q"), ("b", "q"), ("c", "q"), ("d", "slow")):
        await submit(manager, name, queue=queue)
    env.clock.advance(2)
    held = {job.id: job for job in await manager.claim("w", limit=10)}
    env.clock.advance(3)
    await manager.complete("a", held["a"].token)
    await manager.complete("b", held["b"].token)
    await manager.fail("c", held["c"].token, "row 17 is bad", code="ValueError", retry_after=70.0)
    env.clock.advance(20)
    await manager.reap()
    env.clock.advance(60)
    (again,) = await manager.claim("w", queues=["q"])
    await manager.fail("c", again.token, "row 18 is bad", code="ValueError")
    return begin


@suite.case(
    "history", "minutes and hours tell what happened, with waits and runs, by tenant and queue"
)
async def counted(env: Env) -> None:
    manager = await env.manager(POLICY)
    begin = await _day(env, manager)
    assert (await manager.history(begin)).counted_until is None
    assert await manager.roll_up() == 14
    assert await manager.roll_up() == 0
    env.clock.advance(1)
    for minutes in (True, False):
        told = await manager.history(begin, minutes=minutes)
        assert told.counted_until == env.clock.now() - timedelta(seconds=1)
        assert told.bucket_seconds == (60 if minutes else 3600)
        by_queue: dict[str, Counts] = {}
        for one in told.buckets:
            assert one.counts.tenant == "default"
            by_queue.setdefault(one.counts.queue, Counts("", "")).merge(one.counts)
        assert {queue: _told(counts) for queue, counts in by_queue.items()} == {
            "q": {"submitted": 3, "started": 4, "retried": 1, "completed": 2, "dead": 1},
            "slow": {"submitted": 1, "started": 1, "lost": 1},
        }
        assert (by_queue["q"].wait.count, by_queue["q"].run.count) == (4, 4)
        assert by_queue["q"].run.total_us == 9_000_000
        assert by_queue["slow"].wait.total_us == 2_000_000
        assert by_queue["slow"].wait.quantile(0.5) == 1.5
        assert _told(told.totals())["submitted"] == 4
    (first, *_) = (await manager.history(begin, minutes=True)).buckets
    assert (first.at.second, first.at <= begin < first.at + timedelta(minutes=1)) == (0, True)
    assert {one.counts.queue for one in (await manager.history(begin, queues=["q"])).buckets} == {
        "q"
    }
    assert (await manager.scoped("other").history(begin)).buckets == ()
    assert await manager.scoped("other").roll_up() == 0
    for since, until in ((begin, begin), (begin - timedelta(days=40), None)):
        with raises(errors.InvalidTime):
            await manager.history(since, until)


@suite.case(
    "history", "errors that mean the same are one group: how often, since when, and a sample"
)
async def grouped(env: Env) -> None:
    manager = await env.manager(POLICY)
    begin = await _day(env, manager)
    await manager.roll_up()
    env.clock.advance(1)
    found = await manager.error_groups(begin)
    assert found.total == len(found.groups) == 2
    bad, lost = found.groups
    assert (bad.type, bad.category, bad.code) == ("t", Category.TEMPORARY, "ValueError")
    assert (bad.message, bad.queues, bad.tenants) == ("row <n> is bad", ("q",), ("default",))
    assert (bad.count, bad.fatal, bad.sample, sum(bad.trend)) == (2, 1, "c", 2)
    assert (bad.first_at, bad.last_at) == (
        begin + timedelta(seconds=5),
        begin + timedelta(seconds=85),
    )
    assert (lost.code, lost.category, lost.count) == ("lease_expired", Category.SYSTEM, 1)
    assert bad.fingerprint != lost.fingerprint
    assert (await manager.error_groups(begin, limit=1)).groups == (bad,)
    assert (await manager.error_groups(begin, queues=["slow"])).groups == (lost,)
    assert (await manager.error_groups(begin, types=["x"])).groups == ()
    assert (await manager.scoped("other").error_groups(begin)).groups == ()


@suite.case(
    "history", "a step that was cut off anywhere is finished by the next, and counts nothing twice"
)
async def cut_off(env: Env) -> None:
    manager = await env.manager(POLICY)
    begin = await _day(env, manager)
    store = manager.store
    # Before the head moves on, after it, and after some of the minutes were added to.
    for writes in range(1, 6):
        left = writes

        class Cut(Exception):
            pass

        real = store.put_record

        async def put(record: object, real: object = real) -> bool:
            nonlocal left
            if not left:
                raise Cut
            left -= 1
            return await real(record)  # type: ignore[operator, no-any-return]

        store.put_record = put  # type: ignore[method-assign]
        try:
            with raises(Cut):
                await manager.roll_up(3)
        finally:
            del store.put_record
    while await manager.roll_up(3):
        pass
    env.clock.advance(1)
    for minutes in (True, False):
        told = (await manager.history(begin, minutes=minutes)).totals()
        assert _told(told) == {
            "submitted": 4,
            "started": 5,
            "retried": 1,
            "lost": 1,
            "completed": 2,
            "dead": 1,
        }
    (bad, _) = (await manager.error_groups(begin)).groups
    assert bad.count == 2


@suite.case("history", "two who count at once count each event once")
async def raced(env: Env) -> None:
    one = await env.manager(POLICY)
    two = JobManager(one.store, clock=env.clock)
    begin = await _day(env, one)
    store = one.store
    real = store.put_record

    async def late(record: object) -> bool:
        """The other is through with the same step before our write comes."""
        del store.put_record
        assert await two.roll_up(4) == 4
        return await real(record)  # type: ignore[arg-type]

    store.put_record = late  # type: ignore[method-assign]
    assert await one.roll_up(4) == 0
    while await one.roll_up(4):
        pass
    env.clock.advance(1)
    assert (await two.history(begin)).totals().submitted == 4


@suite.case(
    "history", "a log trimmed by age is counted first; minutes and hours go when they are old"
)
async def kept(env: Env) -> None:
    policies = Policies(POLICY, keep_events_seconds=3600.0, trim_without_readers=True)
    manager = await env.manager(policies)
    begin = await _day(env, manager)
    await manager.roll_up(1)
    env.clock.advance(7200)
    assert (await manager.trim_events()).events == 14
    assert (await manager.history(begin, minutes=True)).totals().submitted == 4
    assert await manager.store.records(MINUTE)
    env.clock.advance(50 * 3600)
    for _ in range(12):
        await manager.roll_up()
    assert not await manager.store.records(MINUTE)
    assert (await manager.history(begin)).totals().submitted == 4
    env.clock.advance(31 * 86_400)
    for _ in range(3):
        await manager.roll_up()
    assert not await manager.store.records(HOUR)


@suite.case(
    "history", "one who holds the log for others is still missed where only the rollup reads it"
)
async def no_reader(env: Env) -> None:
    manager = await env.manager(POLICY)
    await _day(env, manager)
    await manager.roll_up()
    env.clock.advance(7200)
    with raises(errors.NoReaders):
        await manager.trim_events(3600.0)
    assert await manager.readers() == ()


@suite.case("history", "the cursor at a time is that before the first event which is not older")
async def at_time(env: Env) -> None:
    manager = await env.manager(POLICY)
    await submit(manager, "old")
    env.clock.advance(4000)
    begin = await _day(env, manager)
    events = await manager.events()

    async def check() -> None:
        for at in {
            event.at + timedelta(microseconds=late) for event in events for late in (-1, 0, 1)
        }:
            after = await manager.events(after=await manager.cursor_at(at))
            expected = next((n for n, one in enumerate(events) if one.at >= at), len(events))
            assert [one.seq for one in after] == [one.seq for one in events[expected:]], at

    await check()
    while await manager.roll_up(2):
        pass
    await check()
    assert await manager.cursor_at(begin + timedelta(days=9)) == await manager.tail()
