"""What bad input gets: one named error that says what was wrong, and nothing is stored."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from headrace import errors
from headrace.codec import PAYLOAD_BYTES_DEFAULT, PAYLOAD_BYTES_MAX
from headrace.model import Dependency, Lease, State
from headrace.policy import Policy
from headrace.retry import Custom
from headrace.spec import JobSpec
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import submit, suite, take, unchanged

NAIVE = datetime(2027, 1, 1)  # noqa: DTZ001 - the point of the case
LAST_MOMENT = datetime.max.replace(tzinfo=timezone(timedelta(hours=-9)))
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)

BAD_SPECS: list[tuple[str, dict[str, Any], type[errors.HeadraceError]]] = [
    ("an empty id", {"id": ""}, errors.InvalidId),
    ("a blank id", {"id": "  "}, errors.InvalidId),
    ("an id of 129 characters", {"id": "x" * 129}, errors.InvalidId),
    ("an id with a control character", {"id": "a\nb"}, errors.InvalidId),
    ("an id that is not text", {"id": 7}, errors.InvalidId),
    ("an empty type", {"type": ""}, errors.InvalidName),
    ("a type of 129 characters", {"type": "x" * 129}, errors.InvalidName),
    ("an empty queue", {"queue": ""}, errors.InvalidName),
    ("an empty tenant", {"tenant": ""}, errors.InvalidName),
    ("an empty key", {"key": ""}, errors.InvalidKey),
    ("a key of 257 characters", {"key": "x" * 257}, errors.InvalidKey),
    ("an empty tag", {"tags": [""]}, errors.InvalidName),
    ("a tag of 257 characters", {"tags": ["x" * 257]}, errors.InvalidName),
    ("65 tags", {"tags": [str(n) for n in range(65)]}, errors.InvalidName),
    ("tags as one text", {"tags": "abc"}, errors.InvalidName),
    ("priority 5", {"priority": 5}, errors.InvalidPriority),
    ("priority -1", {"priority": -1}, errors.InvalidPriority),
    ("a priority of no such name", {"priority": "urgent"}, errors.InvalidPriority),
    ("priority as a truth value", {"priority": True}, errors.InvalidPriority),
    ("a naive run_at", {"run_at": NAIVE}, errors.InvalidTime),
    ("a run_at that is no time", {"run_at": "tomorrow"}, errors.InvalidTime),
    ("a negative delay", {"delay_seconds": -1}, errors.InvalidLimit),
    ("a delay of eleven years", {"delay_seconds": 11 * 365 * 86_400}, errors.InvalidLimit),
    ("no number as delay", {"delay_seconds": float("nan")}, errors.InvalidLimit),
    ("max_attempts 0", {"max_attempts": 0}, errors.InvalidLimit),
    ("a lease of 0 seconds", {"lease_seconds": 0}, errors.InvalidLimit),
    ("a timeout longer than the queue's", {"timeout_seconds": 1801.0}, errors.InvalidLimit),
    ("no timeout where the queue has one", {"timeout_seconds": None}, errors.InvalidLimit),
    ("a negative lifetime", {"lifetime_seconds": -1.0}, errors.InvalidLimit),
    ("a custom backoff", {"backoff": Custom(lambda n, *_: n)}, errors.InvalidInput),
    ("a callback that is no url", {"callback_url": "example.org"}, errors.InvalidInput),
    ("a payload that is not JSON", {"payload": object()}, errors.InvalidPayload),
    ("a payload with a circle", {"payload": CIRCLE}, errors.InvalidPayload),
    ("a payload with NaN", {"payload": [float("nan")]}, errors.InvalidPayload),
    ("a payload with infinity", {"payload": {"x": float("inf")}}, errors.InvalidPayload),
    ("a payload over the limit", {"payload": "x" * PAYLOAD_BYTES_DEFAULT}, errors.PayloadTooLarge),
    ("bytes inside a payload", {"payload": {"a": [b"hi"]}}, errors.InvalidPayload),
    ("bytes over the limit", {"payload": bytes(PAYLOAD_BYTES_DEFAULT + 1)}, errors.PayloadTooLarge),
    ("the reserved payload key", {"payload": {"$bytes": "x"}}, errors.InvalidPayload),
    ("a dependency on nobody", {"after": ["nobody"]}, errors.DependencyNotFound),
    ("a dependency on itself", {"id": "me", "after": ["me"]}, errors.DependencyCycle),
    ("a dependency with an empty id", {"after": [""]}, errors.InvalidId),
    ("no list of tags", {"tags": None}, errors.InvalidName),
    ("no list of dependencies", {"after": None}, errors.InvalidInput),
    ("a queue that is a list", {"queue": ["a"]}, errors.InvalidName),
    ("a run_at beyond the calendar", {"run_at": LAST_MOMENT}, errors.InvalidTime),
    ("an endless delay", {"delay_seconds": 10**400}, errors.InvalidLimit),
    ("a max_attempts beyond all stores", {"max_attempts": 2**70}, errors.InvalidLimit),
    ("an unknown kind of dependency", {"after": [Dependency("a", "x")]}, errors.InvalidInput),  # type: ignore[arg-type]
    ("1001 dependencies", {"after": [str(n) for n in range(1001)]}, errors.InvalidDependency),
]


def _register(title: str, fields: dict[str, Any], error: type[errors.HeadraceError]) -> None:
    @suite.case("bad input", f"{title}: {error.__name__}")
    async def refused(env: Env) -> None:
        manager = await env.manager()
        before = await unchanged(manager)
        with raises(error) as caught:
            await manager.submit(JobSpec(**({"type": "t"} | fields)))
        assert type(caught.error) is error
        assert "nothing was stored" in str(caught.error), caught.error
        assert await unchanged(manager) == before
        good = JobSpec(type="t", id="good")
        with raises(errors.InvalidBatch, errors.InvalidDependency) as caught:
            await manager.submit_many([good, JobSpec(**({"type": "t"} | fields))])
        assert "nothing was stored" in str(caught.error), caught.error
        assert await unchanged(manager) == before


for _title, _fields, _error in BAD_SPECS:
    _register(_title, _fields, _error)


@suite.case("bad input", "exactly at each limit is fine")
async def at_the_limits(env: Env) -> None:
    manager = await env.manager()
    job = await submit(
        manager,
        "x" * 128,
        type="y" * 128,
        key="k" * 256,
        tags=["t" * 256, *(str(n) for n in range(63))],
        payload="x" * (PAYLOAD_BYTES_DEFAULT - 2),
        timeout_seconds=1800.0,
    )
    assert await manager.get(job.id) == job
    large = await env.manager(Policy(payload_bytes_max=PAYLOAD_BYTES_MAX))
    await submit(large, "large", payload=b"x" * PAYLOAD_BYTES_MAX)
    with raises(errors.InvalidLimit):
        Policy(payload_bytes_max=PAYLOAD_BYTES_MAX + 1)


@suite.case(
    "bad input", "negative, zero and oversized limits are refused on every call that takes one"
)
async def limits(env: Env) -> None:
    manager = await env.manager()
    for limit in (0, -1, 1.5, True):
        with raises(errors.InvalidLimit):
            await manager.claim("w", limit=limit)  # type: ignore[arg-type]
        with raises(errors.InvalidLimit):
            await manager.find(limit=limit)  # type: ignore[arg-type]
        with raises(errors.InvalidLimit):
            await manager.events(limit=limit)  # type: ignore[arg-type]
        with raises(errors.InvalidLimit):
            await manager.reap(limit=limit)  # type: ignore[arg-type]
        with raises(errors.InvalidLimit):
            await manager.cleanup(limit=limit)  # type: ignore[arg-type]


@suite.case("bad input", "empty and over-long names are refused on every call that takes one")
async def names(env: Env) -> None:
    manager = await env.manager()
    for name in ("", "x" * 129):
        with raises(errors.InvalidName):
            await manager.claim(name)
        with raises(errors.InvalidName):
            await manager.claim("w", queues=[name])
        with raises(errors.InvalidName):
            await manager.pause(name)
        with raises(errors.InvalidName):
            await manager.expire_worker(name)
        with raises(errors.InvalidName):
            manager.scoped(name)
        with raises(errors.InvalidId):
            await manager.get(name)
        with raises(errors.InvalidId):
            await manager.cancel([name])
        with raises(errors.InvalidId):
            await manager.complete(name, "t")
    with raises(errors.InvalidName):
        await manager.claim("w", queues="default")


@suite.case("bad input", "cancel, delete and redrive of nothing named are refused")
async def empty_selection(env: Env) -> None:
    manager = await env.manager()
    for call in (manager.cancel, manager.delete, manager.redrive):
        with raises(errors.EmptySelection):
            await call()


@suite.case(
    "bad input", "a result, an error or a snooze that cannot be stored leaves the job running"
)
async def bad_outcomes(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")
    job, token = await take(manager, "j")
    before = await unchanged(manager)
    with raises(errors.InvalidPayload):
        await manager.complete("j", token, object())
    with raises(errors.PayloadTooLarge):
        await manager.complete("j", token, "x" * PAYLOAD_BYTES_DEFAULT)
    with raises(errors.InvalidTime):
        await manager.fail("j", token, "no", retry_at=NAIVE)
    with raises(errors.InvalidLimit):
        await manager.fail("j", token, "no", retry_after=-1)
    with raises(errors.InvalidTime):
        await manager.snooze("j", token, until=NAIVE)
    with raises(errors.InvalidInput):
        await manager.snooze("j", token)
    with raises(errors.InvalidLimit):
        await manager.progress("j", token, 1.5)
    with raises(errors.InvalidInput):
        await manager.complete("j", None)
    assert await manager.get("j") == job
    assert await unchanged(manager) == before


@suite.case(
    "bad input",
    "what is not one of the words is refused: category, mode, state, spec, cursor, reason",
)
async def words(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "j")
    job, token = await take(manager, "j")
    before = await unchanged(manager)
    wrong: Any = "tempory"
    number: Any = 5
    nothing: Any = None
    for call in (
        lambda: manager.fail("j", token, "no", category=wrong),
        lambda: manager.fail("j", token, number),
        lambda: manager.cancel(["j"], mode=wrong),
        lambda: manager.cancel(["j"], reason=number),
        lambda: manager.cancel(number),
        lambda: manager.stop("j", token, nothing),
        lambda: manager.abandon("j", number),
        lambda: manager.find(states=[wrong]),
        lambda: manager.find(cursor=number),
        lambda: manager.cleanup({wrong: 1.0}),
        lambda: manager.cleanup({State.PENDING: 1.0}),
        lambda: manager.events(after=nothing),
        lambda: manager.submit(nothing),
        lambda: manager.progress("j", token, wrong),
        lambda: manager.heartbeat([Lease("j", token, -5.0)]),
        lambda: manager.heartbeat([Lease("j", token, float("nan"))]),
    ):
        with raises(errors.InvalidInput):
            await call()
    with raises(errors.InvalidInput):
        manager.scoped(nothing)
    assert await manager.get("j") == job
    assert await unchanged(manager) == before


@suite.case("bad input", "a cursor of another query is refused")
async def cursors(env: Env) -> None:
    manager = await env.manager()
    for cursor in ("", "x", "a", "a-1", "d3", "aé"):
        with raises(errors.InvalidCursor):
            await manager.find(cursor=cursor)


@suite.case("bad input", "a circle within a batch is named and nothing is stored")
async def circle(env: Env) -> None:
    manager = await env.manager()
    before = await unchanged(manager)
    with raises(errors.DependencyCycle) as caught:
        await manager.submit_many(
            [
                JobSpec(type="t", id="free"),
                JobSpec(type="t", id="a", after=["c"]),
                JobSpec(type="t", id="b", after=["a"]),
                JobSpec(type="t", id="c", after=["b"]),
            ]
        )
    assert all(name in str(caught.error) for name in "abc")
    assert "free" not in str(caught.error)
    assert await unchanged(manager) == before
