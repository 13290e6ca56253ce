"""Options: every wrong one is refused where the task is made, and what people write is understood."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from headrace import (
    Dependency,
    DependencyKind,
    Every,
    Headrace,
    JobSpec,
    Policies,
    Policy,
    Snooze,
    State,
    TemporaryError,
)
from headrace.errors import InvalidInput
from headrace.limits import Rate
from headrace.retry import Constant, Custom, Exponential
from headrace.spec import dependencies
from headrace.testing import Harness
from headrace.worker import Settings, Worker


class Fibonacci(Constant, frozen=True):
    """A class of one's own, which would come back from the store as another."""


WRONG: list[dict[str, Any]] = [
    *({"retry": wrong} for wrong in (5, 2.5, "exponential", True, False, [1])),
    {"retry": {"kind": "none"}},
    {"retry": timedelta(1)},
    {"retry": Exponential},
    {"retry": Custom(lambda n, initial, cap: 1.0)},
    {"retry": Fibonacci(1.0)},
    *({"timeout": wrong} for wrong in (0, -1, "soon", "", float("nan"), True, "5 m", "31m")),
    *({"lease": wrong} for wrong in (0, "-5s", float("inf"), 1e300, object())),
    *({"lifetime": wrong} for wrong in (0, "never", timedelta.max, timedelta(-1))),
    *({"delay": wrong} for wrong in (-1, "later", float("nan"), datetime(2030, 1, 1, tzinfo=UTC))),
    {"delay": 5, "run_at": datetime(2030, 1, 1, tzinfo=UTC)},
    *({"run_at": wrong} for wrong in ("tomorrow", datetime(2030, 1, 1), 5)),  # noqa: DTZ001 - one of them
    *({"priority": wrong} for wrong in (9, -1, "urgent", None, 1.0, True, "")),
    *({"max_attempts": wrong} for wrong in (0, -1, "3", 2.0, True)),
    *({"queue": wrong} for wrong in ("", None, 5, "x" * 200, "a\nb")),
    *({"tags": wrong} for wrong in ("one", 5, [5], [""], ["x"] * 3 + [None])),
    *({"unique": wrong} for wrong in (5, "nobody", ["customer", "nobody"], {"customer": 1}, b"x")),
    *({"limit_by": wrong} for wrong in ("nobody", 5, ["customer"])),
    *({"after": wrong} for wrong in (5, b"id", [5], [None], {"id": 1}, "", object())),
    *({"on_success": wrong} for wrong in ("hook", 5, [5], lambda: None)),
    {"on_failure": JobSpec(type="hook", backoff=5)},  # type: ignore[arg-type]
    {"on_success": [JobSpec(type="hook", priority=9)]},
    {"id": ""},
    {"key": "x" * 300},
    {"tenant": 5},
    {"correlation_id": 5},
    {"callback_url": "ftp://example.org"},
    {"quueue": "mail"},
    {"countdown": 5},
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: next(iter(wrong)))
def test_a_wrong_option_is_refused_where_the_task_is_made(wrong: dict[str, Any]) -> None:
    app = Headrace("memory:")

    async def send(customer: int) -> None: ...

    with pytest.raises(InvalidInput, match="task 'send'") as first:
        app.task(**wrong)(send)
    assert not app.tasks
    right = app.task(send)
    with pytest.raises(InvalidInput, match="task 'send'") as second:
        right.options(**wrong)
    assert str(first.value) == str(second.value)


def test_a_mistyped_option_is_told_the_right_one() -> None:
    with pytest.raises(InvalidInput, match="no option 'quueue': did you mean 'queue'"):
        Headrace("memory:").task(quueue="mail")(lambda: None)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("option", "ours"),
    [
        ("bind", "Context"),
        ("countdown", "delay="),
        ("eta", "run_at="),
        ("expires", "lifetime="),
        ("max_retries", "max_attempts="),
        ("time_limit", "timeout="),
        ("job_timeout", "timeout="),
        ("rate_limit", "headrace limits set"),
        ("autoretry_for", "every exception is retried"),
    ],
)
def test_an_option_of_celery_or_rq_is_told_what_it_is_here(option: str, ours: str) -> None:
    given: dict[str, Any] = {option: 5}
    with pytest.raises(InvalidInput, match=f"no option {option!r}: .*{ours}"):
        Headrace("memory:").task(**given)(lambda: None)


@pytest.mark.parametrize("method", ["delay", "apply_async", "s", "si", "enqueue"])
def test_a_method_of_celery_is_told_what_it_is_here(method: str) -> None:
    task = Headrace("memory:").task(name="add")(lambda: None)
    with pytest.raises(AttributeError, match=rf"no attribute {method!r}.*(submit|spec)\("):
        getattr(task, method)
    with pytest.raises(AttributeError, match=r"no attribute 'nobody'$"):
        task.nobody  # type: ignore[attr-defined]  # noqa: B018 - looking is what raises


def test_a_task_can_be_copied() -> None:
    task = Headrace("memory:").task(name="add")(lambda: 5)
    assert copy.copy(task)() == 5


def test_durations_and_priorities_are_text_as_on_the_command_line() -> None:
    app = Headrace("memory:", policies=Policy(timeout_seconds="2h"))  # type: ignore[arg-type]

    @app.task(
        priority="high", timeout="1h30m", lease="90s", lifetime=timedelta(days=1), delay="500ms"
    )
    async def send() -> None: ...

    spec = send.spec()
    assert (spec.priority, spec.timeout_seconds, spec.lease_seconds) == (1, 5400.0, 90.0)
    assert (spec.lifetime_seconds, spec.delay_seconds) == (86_400.0, 0.5)
    assert send.options(priority="BULK").spec().priority == 4
    assert Every("15m") == Every(900.0)
    assert Rate(5, "1m") == Rate(5, 60.0)
    assert Policies(keep_events_seconds="7d").keep_events_seconds == 604_800  # type: ignore[arg-type]
    assert Settings(grace_seconds="1m").grace_seconds == 60  # type: ignore[arg-type]


async def test_a_handler_may_write_durations_as_text() -> None:
    app = Headrace("memory:")

    @app.task
    async def late(how: str) -> None:
        raise TemporaryError("busy", retry_after="2m") if how == "retry" else Snooze("1h")

    async with Harness(app) as harness:
        jobs = [await late.submit(how) for how in ("retry", "snooze")]
        await harness.drain()
        waits = [(await app.get(job)).run_at - harness.clock.now() for job in jobs]
    assert waits == [timedelta(minutes=2), timedelta(hours=1)]


async def test_a_description_takes_text_too_and_a_schedule_keeps_it(store_url: str) -> None:
    async with Headrace(store_url) as app:
        manager = await app.manager()
        spec = JobSpec(type="t", priority="low", delay_seconds="5m", lease_seconds="20s")
        job = (await manager.submit(spec)).job
        assert (job.priority, job.lease_seconds) == (3, 20.0)
        assert job.run_at - job.created_at == timedelta(minutes=5)
        daily = JobSpec(type="t", priority="high", lifetime_seconds="1d", timeout_seconds="5m")
        await manager.schedule("nightly", Every("1d"), daily)
        (kept,) = await manager.schedules()
    assert (kept.job.priority, kept.job.lifetime_seconds, kept.job.timeout_seconds) == (
        1,
        86_400.0,
        300.0,
    )


async def test_a_job_comes_after_a_job_an_id_or_several() -> None:
    app = Headrace("memory:")

    @app.task
    async def step() -> None: ...

    async with app:
        first, second = await step.submit(), await step.submit()
        given: tuple[tuple[Any, list[str]], ...] = (
            (first, [first.id]),
            (first.id, [first.id]),
            ([first, second.id], [first.id, second.id]),
            ({first.id}, [first.id]),
            (Dependency(first.id, DependencyKind.AFTER_ANY), [first.id]),
        )
        for after, ids in given:
            spec = step.options(after=after).spec()
            assert [one.job_id for one in dependencies(spec)] == ids
            third = await step.options(after=after).submit()
            assert third.state is State.BLOCKED
        manager = await app.manager()
        plain = (await manager.submit(JobSpec(type="step", after=first))).job
        assert plain.state is State.BLOCKED


class Told(msgspec.Struct):
    id: str


def test_a_hook_that_cannot_be_told_is_refused_when_it_is_named() -> None:
    app = Headrace("memory:")

    @app.task
    async def plain() -> None: ...

    @app.task
    async def more(job: dict[str, Any], to: str) -> None: ...

    @app.task
    async def text(job: str) -> None: ...

    for wrong in (plain, more, text):
        for option in ("on_success", "on_failure"):
            for given in (wrong, [wrong]):
                options: dict[str, Any] = {option: given}
                with pytest.raises(InvalidInput, match=r"write def \w+\(job: dict\[str, Any\]\)"):
                    plain.options(**options)
                with pytest.raises(InvalidInput, match="cannot be told"):
                    app.task(name="new", **options)(lambda: None)

    @app.task
    async def fits(job: dict[str, Any], to: str = "ops") -> None: ...

    @app.task
    async def typed(job: Told) -> None: ...

    @app.task
    async def anything(job: Any = None) -> None: ...

    specs = plain.options(on_success=[fits, typed], on_failure=anything).spec()
    assert [one.type for one in specs.on_success] == ["fits", "typed"]


async def test_a_callback_that_cannot_be_told_is_refused_and_nothing_is_stored() -> None:
    app = Headrace("memory:")

    @app.task
    async def row(n: int) -> None: ...

    @app.task
    async def wrong(job: dict[str, Any]) -> None: ...

    async with app:
        with pytest.raises(InvalidInput, match="no argument 'batch'"):
            await app.submit_batch([row.spec(1)], wrong)
        assert (await (await app.manager()).stats()).total == 0


async def test_a_task_without_arguments_runs_without_a_payload(store_url: str) -> None:
    """As the command line, a schedule and a batch file submit it."""
    app = Headrace(store_url)

    @app.task
    async def report(day: str = "today") -> str:
        return day

    @app.task
    async def needy(n: int) -> None: ...

    async with app:
        manager = await app.manager()
        jobs = [
            (await manager.submit(JobSpec(type="report", payload=payload))).job
            for payload in (None, {}, {"day": "monday"})
        ]
        bad = (await manager.submit(JobSpec(type="needy"))).job
        await Worker(app).drain()
        assert [await app.result(job) for job in jobs] == ["today", "today", "monday"]
        failed = await app.get(bad)
    assert failed.state is State.FAILED
    assert failed.failure is not None
    assert "missing required field `n`" in failed.failure.message


def test_numbers_are_the_same_in_the_type_the_handler_takes() -> None:
    app = Headrace("memory:")

    @app.task(unique=True, limit_by="weight")
    async def ship(weight: float = 1) -> None: ...

    assert ship.spec().key == ship.spec(1).key == ship.spec(1.0).key
    assert ship.spec(1).limit_key == ship.spec(1.0).limit_key == "1.0"
