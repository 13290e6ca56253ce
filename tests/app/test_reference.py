"""The page on the application names all there is."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from headrace import Context, Headrace, Middleware, Task, Worker, WorkerSettings
from headrace.app import Isolation, Observer, Options

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "application.md").read_text("utf-8")
OF_THE_APPLICATION = [
    name
    for name, one in inspect.signature(Headrace).parameters.items()
    if one.kind is not one.VAR_KEYWORD  # it only says what there is not
]
OF_THE_TASK = ("name", "version", "upcasters", "isolation")


def section(heading: str) -> str:
    """The text below a heading, up to the next of the same rank."""
    _, _, rest = PAGE.partition(f"\n## {heading}\n")
    assert rest, heading
    return rest.split("\n## ")[0]


def public(kind: type) -> list[str]:
    return [name for name in vars(kind) if not name.startswith("_")]


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        ("Headrace", [*public(Headrace), *OF_THE_APPLICATION]),
        ("Task", [*Options.__struct_fields__, *OF_THE_TASK, *Isolation]),
        ("Task", ["submit", "submit_sync", "spec", "options", "follow_up", "upcaster", "types"]),
        ("Context", [*public(Context), "job", "token", "deadline", "is_cancelled", "app"]),
        ("Middleware", public(Middleware)),
        ("Observers", public(Observer)),
        ("Worker", [*public(Worker), *WorkerSettings.__struct_fields__]),
    ],
)
def test_everything_is_named(heading: str, names: list[str]) -> None:
    text = section(heading).replace("await ", "").replace("task.", "").replace("app.", "")
    for name in names:
        marks = (f"`{name}`", f"`{name}(", f"`@{name}(", f"{name}=", f"Context.{name}(")
        assert any(mark in text for mark in marks), name


def test_the_task_has_no_more_than_that() -> None:
    known = {"app", "function", "name", "version", "type", "isolation", "arguments", "given"}
    assert set(public(Task)) - known == {"types", "options", "upcaster", "spec"} | {
        "follow_up",
        "submit",
        "submit_sync",
        "load",
    }
