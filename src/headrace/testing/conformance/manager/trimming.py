"""Readers of the log, and trimming behind them."""

from __future__ import annotations

from headrace.errors import InvalidCursor, InvalidInput, LogTrimmed, NoReaders
from headrace.manager import JobManager, Trimmed
from headrace.model import Event
from headrace.policy import Policies
from headrace.stores.base import Health
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import finish, submit, suite, unchanged

HOUR = 3600.0


async def _hours(env: Env, manager: JobManager, count: int) -> tuple[Event, ...]:
    """A job from start to end, three events, at the beginning of every hour; now the last is an hour old."""
    for _ in range(count):
        name = env.clock.now().isoformat()
        await submit(manager, name)
        await finish(manager, name)
        env.clock.advance(HOUR)
    return await manager.events()


@suite.case(
    "readers", "are remembered with the last place they have reached, until they are forgotten"
)
async def remembered(env: Env) -> None:
    manager = await env.manager()
    assert await manager.readers() == ()
    first = await manager.reader_reached("lake", "", label="/data/lake")
    log = await _hours(env, manager, 1)
    await manager.reader_reached("audit", log[0].cursor)
    moved = await manager.reader_reached("lake", log[1].cursor)
    assert (moved.cursor, moved.label, moved.since) == (log[1].cursor, "/data/lake", first.since)
    assert moved.reached_at == env.clock.now() > first.reached_at == first.since
    assert [one.name for one in await manager.readers()] == ["audit", "lake"]
    assert (await manager.readers())[1] == moved
    back = await manager.reader_reached("lake", "", label="elsewhere")
    assert (back.cursor, back.label) == ("", "elsewhere")
    assert await manager.forget_reader("lake")
    assert not await manager.forget_reader("lake")
    assert [one.name for one in await manager.readers()] == ["audit"]


@suite.case("readers", "are behind by the events that they do not hold")
async def lag(env: Env) -> None:
    manager = await env.manager()
    log = await _hours(env, manager, 2)
    for held in range(len(log) + 1):
        reader = await manager.reader_reached("lake", log[held - 1].cursor if held else "")
        behind = await manager.reader_lag(reader)
        assert (behind.events, behind.at_least, behind.trimmed) == (len(log) - held, False, False)
        assert behind.oldest_at == (log[held].at if held < len(log) else None)


@suite.case("readers", "cannot be at a place that is none, or that the log has lost")
async def bad_places(env: Env) -> None:
    manager = await env.manager()
    log = await _hours(env, manager, 2)
    early = await manager.reader_reached("lake", log[0].cursor)
    with raises(InvalidCursor):
        await manager.reader_reached("lake", "x")
    for name in ("", "n\nn", "x" * 129):
        with raises(InvalidInput):
            await manager.reader_reached(name, "")
    await manager.forget_reader("lake")
    assert await manager.trim_events(HOUR / 2, without_readers=True) == Trimmed(events=6)
    with raises(LogTrimmed):
        await manager.reader_reached("lake", log[0].cursor)
    assert await manager.readers() == ()
    assert (await manager.reader_lag(early)).trimmed
    await manager.reader_reached("lake", log[-1].cursor)


@suite.case("trim", "takes what is old enough and stops at what is not")
async def by_age(env: Env) -> None:
    manager = await env.manager()
    log = await _hours(env, manager, 4)
    await manager.reader_reached("lake", log[-1].cursor)
    for hours, gone in ((4, 0), (3.5, 3), (3.5, 0), (1.5, 6), (1, 0), (0, 3)):
        assert await manager.trim_events(hours * HOUR) == Trimmed(events=gone)
    assert await manager.events() == ()
    assert await manager.tail() == log[-1].cursor


@suite.case("trim", "never goes past the slowest reader, and says who that is")
async def slowest(env: Env) -> None:
    manager = await env.manager()
    log = await _hours(env, manager, 2)
    await manager.reader_reached("fast", log[-1].cursor)
    await manager.reader_reached("slow", log[1].cursor)
    await manager.reader_reached("slow too", log[1].cursor)
    held = Trimmed(events=2, held_back_by=("slow", "slow too"))
    assert await manager.trim_events(0, dry_run=True) == held
    assert len(await manager.events()) == 6
    assert await manager.trim_events(0, without_readers=True) == held
    assert await manager.trim_events(0) == Trimmed(events=0, held_back_by=held.held_back_by)
    await manager.reader_reached("slow", log[4].cursor)
    assert (await manager.trim_events(0)).held_back_by == ("slow too",)
    await manager.forget_reader("slow too")
    assert await manager.trim_events(0) == Trimmed(events=3, held_back_by=("slow",))
    await manager.reader_reached("new", "")
    assert (await manager.trim_events(0)).held_back_by == ("new", "slow")
    assert await manager.trim_events(10 * HOUR) == Trimmed(events=0)  # its age alone keeps it
    assert await manager.events() == log[5:]


@suite.case("trim", "takes no more than the limit; the next goes on")
async def limited(env: Env) -> None:
    manager = await env.manager()
    log = await _hours(env, manager, 3)
    await manager.reader_reached("lake", log[7].cursor)
    assert await manager.trim_events(0, limit=5, dry_run=True) == Trimmed(events=5)
    assert await manager.trim_events(0, limit=5) == Trimmed(events=5)
    assert await manager.events() == log[5:]
    assert await manager.trim_events(0, limit=5) == Trimmed(events=3, held_back_by=("lake",))


@suite.case("trim", "without a reader is refused, unless that is what is asked for")
async def no_readers(env: Env) -> None:
    manager = await env.manager()
    log = await _hours(env, manager, 1)
    for dry_run in (True, False):
        with raises(NoReaders):
            await manager.trim_events(0, dry_run=dry_run)
    assert await manager.events() == log
    assert await manager.trim_events(0, without_readers=True, dry_run=True) == Trimmed(events=3)
    assert await manager.trim_events(0, without_readers=True) == Trimmed(events=3)
    assert await manager.trim_events(0, without_readers=True) == Trimmed(events=0)


@suite.case("trim", "is not for one tenant: the log is everybody's")
async def operators_only(env: Env) -> None:
    manager = await env.manager()
    await _hours(env, manager, 1)
    reader = await manager.reader_reached("lake", "")
    bound = manager.scoped("acme")
    before = await unchanged(manager)
    for refused in (
        bound.trim_events(0, without_readers=True),
        bound.reader_reached("lake", ""),
        bound.forget_reader("lake"),
        bound.readers(),
        bound.reader_lag(reader),
    ):
        with raises(InvalidInput):
            await refused
    assert await manager.readers() == (reader,)
    assert await unchanged(manager) == before
    assert len(await manager.events()) == 3


@suite.case(
    "trim", "by the policies: not unless they say how long, and then as a part of maintenance"
)
async def by_policy(env: Env) -> None:
    manager = await env.manager(Policies(keep_events_seconds=1.5 * HOUR))
    log = await _hours(env, manager, 2)
    assert (await manager.maintain()).trimmed == 0  # there is no reader
    await manager.reader_reached("lake", log[-1].cursor)
    assert (await manager.scoped("acme").maintain()).trimmed == 0
    assert (await manager.maintain()).trimmed == 3
    assert await manager.events() == log[3:]
    env.clock.advance(HOUR)
    assert await manager.trim_events() == Trimmed(events=3)


@suite.case("readers", "that have fallen silent are told of by the diagnosis")
async def silent(env: Env) -> None:
    manager = await env.manager()
    await manager.reader_reached("lake", "")
    env.clock.advance(8 * 24 * HOUR)
    await manager.reader_reached("audit", "")
    told = {one.what: one for one in await manager.diagnose() if one.what.startswith("reader")}
    assert told["reader lake"].health is Health.WARNING
    assert "headrace events forget lake" in (told["reader lake"].advice or "")
    assert told["reader audit"].health is Health.OK
    tenants = await manager.scoped("acme").diagnose()
    assert not [one for one in tenants if one.what.startswith("reader")]
