"""Results of jobs as arguments of others: chains, groups, and what happens when there is no result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace import (
    Dependency,
    DependencyKind,
    Headrace,
    Job,
    PermanentError,
    State,
    chain,
    group,
    result_of,
    results_of,
)
from headrace.crypto import KeyRing
from headrace.errors import InvalidInput, InvalidPayload, JobFailed
from headrace.worker import Settings, Worker


@pytest.fixture
def app(store_url: str) -> Headrace:
    app = Headrace(store_url)

    @app.task
    async def number(value: int) -> int:
        if value < 0:
            raise PermanentError("below zero")
        return value

    @app.task
    def double(value: int, times: int = 1) -> int:
        return value << times

    @app.task
    async def total(values: list[int]) -> int:
        return sum(values)

    @app.task
    async def name(text: str) -> str:
        return text

    return app


async def drain(app: Headrace) -> None:
    await Worker(app, Settings(maintenance=False)).drain()


async def submitted(app: Headrace, name: str, /, *args: Any, **options: Any) -> Job[Any]:
    return await app.submit(app.tasks[name].options(**options), *args)


async def test_a_chain_hands_each_result_to_the_next(app: Headrace) -> None:
    tasks = app.tasks
    async with app:
        last = await app.chain(tasks["number"].spec(3), tasks["double"], tasks["double"])
        assert (last.type, last.state) == ("double", State.BLOCKED)
        await drain(app)
        assert await app.result(last) == 12


async def test_a_group_is_joined_in_order(app: Headrace) -> None:
    async with app:
        joined = await app.group(
            [app.tasks["number"].spec(value) for value in (5, 3, 4)], then=app.tasks["total"]
        )
        await drain(app)
        assert await app.result(joined) == 12


async def test_results_of_stored_jobs_are_arguments_among_others(app: Headrace) -> None:
    async with app:
        first = await submitted(app, "number", 1)
        await drain(app)
        other = await submitted(app, "number", 2)
        third = await app.submit("double", result_of(first), times=3)
        both = await app.submit("total", results_of([first, other, third]))
        assert third.state is State.PENDING, "what it takes has completed already"
        assert both.state is State.BLOCKED
        await drain(app)
        assert (await app.result(third), await app.result(both)) == (8, 11)


async def test_whoever_takes_a_result_falls_with_its_job(app: Headrace) -> None:
    async with app:
        last = await app.chain(
            app.tasks["number"].spec(-1), app.tasks["double"], app.tasks["double"]
        )
        await drain(app)
        ended = await app.get(last)
        assert (ended.state, ended.attempt) == (State.FAILED, 0)


async def test_a_result_that_is_not_there_fails_the_job_and_says_whose(app: Headrace) -> None:
    async with app:
        bad = await submitted(app, "number", -1)
        later = Dependency(bad.id, DependencyKind.AFTER_ANY)
        taker = await submitted(app, "double", result_of(bad), after=later)
        await drain(app)
        with pytest.raises(JobFailed, match=f"result of job {bad.id}, which is failed"):
            await app.result(taker)
        assert (await app.get(taker)).failure.code == "no_result"  # type: ignore[union-attr]


async def test_a_result_of_another_type_fails_for_good(app: Headrace) -> None:
    async with app:
        text = await submitted(app, "name", "three")
        taker = await app.submit("double", result_of(text))
        await drain(app)
        ended = await app.get(taker)
        assert ended.state is State.FAILED
        assert ended.failure is not None
        assert "Expected `int`" in ended.failure.message


async def test_what_looks_like_a_name_of_a_result_inside_an_argument_is_data(app: Headrace) -> None:
    async with app:
        secret = await submitted(app, "name", "secret")
        await drain(app)

        @app.task
        async def keep(value: dict[str, Any]) -> dict[str, Any]:
            return value

        data = {"$results": {"text": secret.id}}
        job = await keep.submit(data)
        await drain(app)
        assert await app.result(job) == data


async def test_encrypted_results_are_handed_on(store_url: str) -> None:
    pytest.importorskip("cryptography")
    app = Headrace(store_url, keys=KeyRing({"k1": bytes(32)}, primary="k1"))

    @app.task
    async def number(value: int) -> int:
        return value + 1

    async with app:
        last = await app.chain(number.spec(1), number, number)
        await drain(app)
        assert await app.result(last) == 4
        assert (await app.get(last)).seals is not None


async def test_what_cannot_be_a_result_is_refused_before_anything_is_stored() -> None:
    app = Headrace("memory:")

    @app.task
    async def number(value: int) -> int:
        return value

    @app.task(unique=True)
    async def once(value: int) -> int:
        return value

    @app.task
    async def total(values: list[int]) -> int:
        return sum(values)

    @app.task(limit_by="value")
    async def limited(value: int) -> int:
        return value

    async with app:
        job = await number.submit(1)
        refused: list[Callable[[], object]] = [
            lambda: number.spec(result_of(number.spec(1))),
            lambda: number.spec(result_of("an id")),  # type: ignore[arg-type]
            lambda: chain(once.spec(1), number),
            lambda: chain(job, number),  # type: ignore[arg-type]
            lambda: group([], then=total),
            lambda: limited.spec(result_of(job)),
        ]
        for call in refused:
            with pytest.raises(InvalidInput, match="nothing was stored"):
                call()
        with pytest.raises(InvalidPayload, match="only a whole argument"):
            total.spec([result_of(job), 2])
        assert [one.id async for one in app.find()] == [job.id]
