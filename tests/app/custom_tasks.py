"""Tasks that take and give models of several libraries, in a module that child processes can import."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import attrs
import pydantic

from headrace import Headrace


class Line(pydantic.BaseModel):
    sku: str
    count: int = pydantic.Field(gt=0)


class Order(pydantic.BaseModel):
    lines: list[Line]
    at: datetime
    note: str | None = None


@dataclass
class Parcel:
    order: Order
    weight: float


@attrs.define
class Label:
    parcel: Parcel
    text: str = "none"


class Stranger:
    """Nothing that JSON could be."""


ORDER = Order(lines=[Line(sku="a", count=2)], at=datetime(2026, 5, 1, tzinfo=UTC))


def make(url: str) -> tuple[Headrace, Any, Any]:
    app = Headrace(url)

    @app.task
    async def pack(order: Order, others: list[Order] | None = None) -> Parcel:
        assert isinstance(order, Order)
        assert all(isinstance(one, Order) for one in others or [])
        return Parcel(order, weight=float(sum(line.count for line in order.lines)))

    @app.task
    def stick(parcel: Parcel) -> Label:
        assert isinstance(parcel.order.lines[0], Line)
        return Label(parcel, text="fragile")

    return app, pack, stick


app = Headrace("memory:")


@app.task(isolation="process")
async def read(label: Label) -> Order:
    assert isinstance(label.parcel.order, Order)
    return label.parcel.order
