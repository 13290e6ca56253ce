"""What people write from the habit of other libraries: it works, or the message names the right word."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from headrace import Cron, Every, Headrace, State, errors
from headrace.errors import InvalidInput, InvalidSchedule
from tests.unit.samples import job_in


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("broker", r"Headrace\('redis://localhost'\)"),
        ("backend", "results are kept"),
        ("nonsense", r"help\(Headrace\)"),
    ],
)
def test_an_application_is_not_made_of_a_broker(argument: str, says: str) -> None:
    given: Any = {argument: "redis://localhost"}
    with pytest.raises(TypeError, match=says):
        Headrace("tasks", **given)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("bind", "Context"),
        ("max_retries", "max_attempts"),
        ("countdown", "delay="),
        ("eta", "run_at="),
        ("schedule", "app.schedule"),
        ("max_atempts", "did you mean 'max_attempts'"),
    ],
)
def test_an_option_of_another_library_is_told_ours(option: str, says: str) -> None:
    app = Headrace("memory:")
    given: dict[str, Any] = {option: 5}
    with pytest.raises(InvalidInput, match=says):
        app.task(**given)(lambda: None)


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("delay", "submit"),
        ("apply_async", "options"),
        ("s", "spec"),
        ("enqueue", "submit_sync"),
    ],
)
def test_a_method_of_another_library_is_told_ours(method: str, says: str) -> None:
    app = Headrace("memory:")
    task = app.task(name="f")(lambda: None)
    with pytest.raises(AttributeError, match=says):
        getattr(task, method)


def test_a_job_knows_no_store_and_says_who_does() -> None:
    job = job_in(State.RUNNING)
    for name, says in (
        ("wait", "app.wait"),
        ("refresh", "app.get"),
        ("cancel", "app.cancel"),
        ("get", "timeout"),
        ("status", "job.state"),
    ):
        assert not hasattr(job, name)
        with pytest.raises(AttributeError, match=says):
            getattr(job, name)


def test_a_job_as_a_dict_is_json_without_its_token() -> None:
    job = job_in(State.RUNNING, payload_json=b'{"to":"ada"}')
    record = job.to_dict()
    assert record["payload"] == {"to": "ada"}
    assert record["state"] == "running"
    assert record["created_at"].endswith("Z")
    assert job.token is not None
    assert job.token not in json.dumps(record)


def test_a_notebook_shows_a_table_without_contents() -> None:
    job = job_in(State.RUNNING, type="<b>", payload_json=b'"secret"')
    shown = job._repr_html_()
    assert shown.startswith("<table>")
    assert "&lt;b&gt;" in shown
    assert "secret" not in shown


def test_a_guessed_error_is_told_its_name() -> None:
    with pytest.raises(AttributeError, match="JobNotFound"):
        _ = errors.NotFound
    with pytest.raises(ImportError):
        from headrace.errors import Nonsense  # noqa: F401


async def test_a_schedule_by_text() -> None:
    app = Headrace("memory:")

    @app.task
    async def report() -> None: ...

    given: tuple[tuple[Any, Cron | Every], ...] = (
        ("0 6 * * *", Cron("0 6 * * *")),
        ("@daily", Cron("0 0 * * *")),
        ("15m", Every(900)),
        (timedelta(hours=1), Every(3600)),
    )
    async with app:
        for number, (when, meant) in enumerate(given):
            made = await app.schedule(f"s{number}", when, report.spec())
            assert made.when == meant
        for nonsense in ("nightly", "0 6 * *", 900):
            with pytest.raises(InvalidInput):
                await app.schedule("none", nonsense, report.spec())  # type: ignore[arg-type]


def test_the_zone_of_a_cron_has_one_name() -> None:
    with pytest.raises(InvalidSchedule, match="zone="):
        Cron("0 6 * * *", timezone="Europe/Berlin")  # type: ignore[call-arg]
