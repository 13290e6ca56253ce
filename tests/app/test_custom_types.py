"""Dataclasses, attrs classes and Pydantic models as arguments and results, on every store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace import Headrace
from headrace.app.inputs import result_of
from headrace.errors import InvalidInput, InvalidPayload, JobFailed
from headrace.worker import Settings, Worker
from tests.app import custom_tasks
from tests.app.custom_tasks import ORDER, Label, Line, Order, Parcel, Stranger, make


async def test_they_go_in_and_come_out_as_what_they_were(store_url: str) -> None:
    app, pack, stick = make(store_url)
    async with app:
        packed = await pack.submit(ORDER, others=[ORDER])
        stuck = await stick.submit(result_of(packed))
        await Worker(app, Settings(maintenance=False)).drain()
        parcel = await app.result(packed)
        assert parcel == Parcel(ORDER, weight=2.0)
        assert await app.result(stuck) == Label(parcel, text="fragile")
        again = await pack.submit({"lines": [], "at": "2026-05-01T00:00:00Z"})
        await Worker(app, Settings(maintenance=False)).drain()
        assert (await app.result(again)).weight == 0.0


async def test_a_result_comes_from_a_child_process() -> None:
    async with custom_tasks.app as app:
        job = await custom_tasks.read.submit(Label(Parcel(ORDER, 1.5)))
        await Worker(app, Settings(maintenance=False)).drain()
        assert await app.result(job) == ORDER


def wrong() -> Iterator[tuple[Any, str]]:
    yield {"lines": [{"sku": "a", "count": 0}], "at": "2026-05-01T00:00:00Z"}, "Order.lines.0.count"
    yield {"lines": [], "at": "noon"}, "Order.at"
    yield {"lines": []}, "Order.at: Field required"
    yield ["x"], "Order: Input should be a valid dictionary"


@pytest.mark.parametrize(("given", "says"), list(wrong()))
def test_what_does_not_fit_a_model_is_told_where_in_one_line(given: Any, says: str) -> None:
    _, pack, _ = make("memory:")
    with pytest.raises(InvalidPayload) as refused:
        pack.spec(given)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "pydantic.dev" not in str(refused.value)


def test_a_class_that_json_cannot_be_is_refused_where_the_task_is_made() -> None:
    app = Headrace("memory:")

    async def takes(order: list[Stranger]) -> None: ...

    async def gives() -> dict[str, Stranger]:
        return {}

    async def either(order: Order | Line) -> None: ...

    async def anything(order: object) -> None: ...

    for function, says in ((takes, "takes 'order' as Stranger"), (gives, "it returns Stranger")):
        with pytest.raises(InvalidInput, match=says) as refused:
            app.task(function)
        assert "dataclasses, attrs classes" in str(refused.value)
    with pytest.raises(InvalidInput, match="a type that cannot be stored"):
        app.task(either)
    assert not app.tasks
    app.task(anything)
    with pytest.raises(InvalidPayload, match="Pydantic models"):
        app.tasks["anything"].spec(Stranger())


async def test_a_result_that_is_no_json_fails_for_good() -> None:
    app = Headrace("memory:")

    @app.task
    async def gives() -> Any:
        return Stranger()

    async with app:
        job = await gives.submit()
        await Worker(app, Settings(maintenance=False)).drain()
        with pytest.raises(JobFailed, match="cannot be written as JSON"):
            await app.result(job)
