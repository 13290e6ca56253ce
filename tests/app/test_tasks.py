"""Tasks: names, arguments, options, versions."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from headrace import Context, Headrace, JobSpec
from headrace.errors import InvalidInput, InvalidLimit, InvalidName, InvalidPayload, UnknownTask
from headrace.model import Job, State, new_id


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Address:
    street: str
    number: int


class Order(msgspec.Struct):
    to: Address
    at: datetime


class Model:
    """Neither JSON nor a class that msgspec knows, as the models of other packages are."""


def app_with(function: Any, **options: Any) -> tuple[Headrace, Any]:
    app = Headrace("memory:")
    return app, app.task(**options)(function)


def job_of(spec: JobSpec) -> Job:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Job(
        id=new_id(),
        type=spec.type,
        payload_json=msgspec.json.encode(spec.payload),
        created_at=now,
        state=State.PENDING,
        run_at=now,
        updated_at=now,
    )


def test_arguments_travel_as_plain_json_and_come_back_typed() -> None:
    async def ship(order: Order, colour: Colour, tags: set[str], note: str = "none") -> None: ...

    _, task = app_with(ship)
    order = Order(Address("High St", 4), datetime(2026, 3, 1, tzinfo=UTC))
    spec = task.spec(order, Colour.RED, tags={"a"})
    assert spec.payload == {
        "order": {"to": {"street": "High St", "number": 4}, "at": "2026-03-01T00:00:00Z"},
        "colour": "red",
        "tags": ["a"],
    }
    assert task.load(job_of(spec)) == {
        "order": order,
        "colour": Colour.RED,
        "tags": {"a"},
        "note": "none",
    }


@pytest.mark.parametrize(
    ("args", "kwargs", "says"),
    [
        ((), {}, "missing a required argument: 'a'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        (("x",), {}, "Expected `int`, got `str`"),
        ((1,), {"c": 1}, "unexpected keyword argument 'c'"),
        ((1, object()), {}, "object"),
    ],
)
def test_a_wrong_call_is_refused_at_submission(args: Any, kwargs: Any, says: str) -> None:
    async def add(a: int, b: Any = 2) -> Any:
        return a + b

    _, task = app_with(add)
    with pytest.raises(InvalidPayload, match="nothing was stored") as refused:
        task.spec(*args, **kwargs)
    assert says in str(refused.value)


def test_a_stored_payload_that_does_not_fit_is_refused_before_the_run() -> None:
    async def add(a: int) -> int:
        return a

    _, task = app_with(add)
    for payload in ({"a": "x"}, {}, {"a": 1, "more": 2}, [1]):
        with pytest.raises(InvalidPayload, match="does not fit task 'add'"):
            task.load(job_of(JobSpec(type="add", payload=payload)))


def test_mutable_defaults_are_not_shared() -> None:
    async def gather(into: list[int] = []) -> None: ...  # noqa: B006 - that is the point

    _, task = app_with(gather)
    first = task.load(job_of(JobSpec(type="gather", payload={})))["into"]
    first.append(1)
    assert task.load(job_of(JobSpec(type="gather", payload={})))["into"] == []


def test_the_context_is_no_argument_of_the_job() -> None:
    async def work(ctx: Context, a: int) -> None: ...

    _, task = app_with(work)
    assert task.spec(1).payload == {"a": 1}
    assert task.arguments.context_name == "ctx"


def test_unnamed_arguments_are_refused_when_the_task_is_registered() -> None:
    async def many(*values: int) -> None: ...

    with pytest.raises(InvalidInput, match="each must be named"):
        app_with(many)


def test_names_are_registered_once_and_are_no_import_paths() -> None:
    async def send() -> None: ...

    app, task = app_with(send)
    assert task.type == "send"
    assert app.task_of("send") is task
    with pytest.raises(InvalidName, match="registered already"):
        app.task(send)
    with pytest.raises(InvalidName, match="marks a task's version"):
        app.task(name="send@2")(send)


async def test_an_unknown_name_stores_nothing() -> None:
    async with Headrace("memory:") as app:
        with pytest.raises(UnknownTask, match="nothing was stored"):
            await app.submit("nobody")
        assert (await (await app.manager()).stats()).total == 0


def test_options_become_the_specification() -> None:
    async def send(customer: int, text: str) -> None: ...

    _, task = app_with(
        send,
        queue="mail",
        max_attempts=7,
        timeout=timedelta(minutes=2),
        priority=1,
        tags={"team": "a"},
        limit_by="customer",
    )
    spec = task.spec(4, "x")
    assert (spec.queue, spec.max_attempts, spec.timeout_seconds) == ("mail", 7, 120)
    assert (spec.priority, spec.tags, spec.limit_key) == (1, ("team=a",), "4")
    other = task.options(priority=0, delay=5).spec(4, "x")
    assert (other.priority, other.delay_seconds, other.queue) == (0, 5, "mail")
    with pytest.raises(InvalidInput, match="colour"):
        task.options(colour="red")
    with pytest.raises(InvalidInput, match="no argument 'nobody'"):
        app_with(send, unique="nobody")


def test_unique_by_all_arguments_or_by_some() -> None:
    async def send(customer: int, text: str = "") -> None: ...

    _, every = app_with(send, unique=True)
    assert every.spec(1, "a").key == every.spec(customer=1, text="a").key
    assert every.spec(1, "a").key != every.spec(1, "b").key
    _, some = app_with(send, unique="customer")
    assert some.spec(1, "a").key == some.spec(1, "b").key
    assert some.spec(1, "a").key != some.spec(2, "a").key


def test_a_key_may_be_held_whether_or_not_the_job_has_ended() -> None:
    async def send(customer: int) -> None: ...

    _, task = app_with(send, unique=True, key_hold=timedelta(hours=24))
    assert task.spec(1).key_hold_seconds == 86_400
    assert task.template.key_hold_seconds is None  # nor has it a key
    _, plain = app_with(send, key_hold=60)
    assert plain.spec(1).key_hold_seconds is None
    assert plain.options(key="k").spec(1).key_hold_seconds == 60


def test_an_argument_left_to_its_default_is_the_same_as_the_default_itself() -> None:
    async def send(customer: int, region: str = "eu") -> None: ...

    for unique in (True, "region"):
        _, task = app_with(send, unique=unique, limit_by="region")
        assert task.spec(1).key == task.spec(1, "eu").key
        assert task.spec(1).key != task.spec(1, "us").key
        assert task.spec(1).limit_key == "eu"
        assert task.spec(1).payload == {"customer": 1}  # what is stored leaves it to the run


def test_versions_are_types_and_upcasters_lead_up() -> None:
    async def send(to: str, subject: str) -> None: ...

    app, task = app_with(send, version=3, upcasters={2: lambda old: old | {"subject": "none"}})
    assert task.type == "send@3"
    assert task.types == ("send@3", "send@2")
    assert app.task_of("send") is None  # nothing leads up from version 1 yet

    @task.upcaster(from_version=1)
    def _(old: dict[str, Any]) -> dict[str, Any]:
        return {"to": old["address"]}

    assert task.types == ("send@3", "send@2", "send")
    old = job_of(JobSpec(type="send", payload={"address": "ada"}))
    assert task.load(old) == {"to": "ada", "subject": "none"}
    assert app.task_of("send@4") is None
    with pytest.raises(InvalidLimit):
        task.upcaster(from_version=3)


def test_where_a_handler_runs_is_checked() -> None:
    async def on_loop() -> None: ...

    def in_thread() -> None: ...

    for function, isolation in ((on_loop, "thread"), (in_thread, "loop"), (in_thread, "moon")):
        with pytest.raises(InvalidInput):
            app_with(function, isolation=isolation)


def test_a_task_can_still_be_called() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    _, task = app_with(add)
    assert task(1, 2) == 3
