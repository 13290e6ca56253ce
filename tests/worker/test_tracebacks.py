"""Where a handler failed is kept with the job: its own code, the last attempts, encrypted if the job is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headrace import Context, Headrace, KeyRing, PermanentError, State, TemporaryError
from headrace.crypto import new_key
from headrace.manager import JobManager
from headrace.retry import NoBackoff
from headrace.worker import Settings, Worker
from headrace.worker.tracebacks import TRACEBACK_BYTES_MAX, traceback_of
from tests.worker import handlers
from tests.worker.running import reached, working

QUIET = Settings(maintenance=False)
SECRET = "the PIN is 1234"


def look_up(row: dict[str, str]) -> str:
    return row["customer"]


async def test_the_last_attempts_keep_where_they_failed(store_url: str) -> None:
    app = Headrace(store_url)

    @app.task(max_attempts=6, retry=NoBackoff())
    async def charge(ctx: Context) -> str:
        ctx.log("here we go")
        if ctx.attempt == 5:
            raise TemporaryError("the bank is closed", retry_after=0)
        return look_up({})

    async with app:
        job = await charge.submit()
        await Worker(app, QUIET).drain()
        manager = await app.manager()
        found = await manager.failed_attempts(job.id, limit=10)
        last = await manager.failed_attempts(job.id)
        job = await app.get(job)
    assert [(one.attempt, one.state) for one in found] == [
        *((number, State.RETRYING) for number in range(1, 6)),
        (6, State.DEAD),
    ]
    assert [one.told for one in found] == [
        *4 * ["KeyError: 'customer'"],
        "the bank is closed",
        "KeyError: 'customer'",
    ]
    assert list(last) == list(found[-3:])
    kept = [one.attempt for one in found if one.traceback is not None]
    assert kept == [3, 4, 6], "the last three that have one"
    for number in kept:
        lines = str(found[number - 1].traceback).splitlines()
        assert lines[0] == "Traceback (most recent call last):"
        assert lines[1].startswith(f'  File "{__file__}", line ')
        assert lines[1].endswith("in charge"), (
            "the handler's own code, and nothing of what called it"
        )
        assert any("in look_up" in line for line in lines[3:6])
        assert lines[-1] == "KeyError: 'customer'"
    assert [line["text"] for line in job.log].count("here we go") == 6


async def test_what_led_to_a_failure_that_was_meant_is_kept(store_url: str) -> None:
    app = Headrace(store_url)

    @app.task(max_attempts=1)
    def charge(reason: str) -> None:
        try:
            look_up({})
        except KeyError as error:
            raise PermanentError(reason, code="NO_CUSTOMER") from error

    async with app:
        job = await charge.submit("nobody\nthere")
        await Worker(app, QUIET).drain()
        (found,) = await (await app.manager()).failed_attempts(job.id)
    assert found.told == "NO_CUSTOMER: nobody\nthere"
    assert found.traceback is not None
    assert "KeyError: 'customer'" in found.traceback
    assert "direct cause" in found.traceback
    assert "threads.py" not in found.traceback
    assert "nobody" in found.traceback.splitlines()[-2]


async def test_a_handler_in_a_child_process_says_where_it_failed(tmp_path: Path) -> None:
    app = handlers.make_app(f"sqlite:///{tmp_path}/jobs.db")
    async with app, working(app):
        job = await reached(app, await handlers.fail_deep_in_child.submit(2), State.DEAD)
        (found,) = await (await app.manager()).failed_attempts(job.id)
    assert found.told == "KeyError: 'customer'"
    assert found.traceback is not None
    assert found.traceback.count("in fail_deep_in_child") == 3
    assert "worker/child.py" not in found.traceback


async def test_the_traceback_of_an_encrypted_job_is_as_secret_as_its_message(
    store_url: str,
) -> None:
    app = Headrace(store_url, keys=KeyRing.parse(new_key("k1")))

    @app.task(max_attempts=2, retry=NoBackoff())
    async def charge() -> None:
        raise KeyError(SECRET)

    async with app:
        manager = await app.manager()
        job = await charge.submit()
        await Worker(app, QUIET).drain()
        found = await manager.failed_attempts(job.id)
        assert [SECRET in str(one.message) for one in found] == [True, True]
        assert [SECRET in str(one.traceback) for one in found] == [True, True]
        blind = JobManager(manager.store, clock=manager.clock)
        told = await blind.failed_attempts(job.id)
        assert [one.told for one in told] == 2 * ["KeyError (encrypted)"]
        assert [one.traceback for one in told] == [None, None]
        row = (await manager.store.get([job.id]))[job.id]
        assert row.log_json is not None
        assert SECRET.encode() not in row.log_json


async def test_attempts_that_were_lost_or_ran_too_long_stand_in_the_same_list(
    tmp_path: Path,
) -> None:
    app = Headrace(f"sqlite:///{tmp_path}/jobs.db")

    @app.task(max_attempts=2, retry=NoBackoff(), timeout=0.05)
    async def stuck(ctx: Context) -> None:
        await asyncio.sleep(60)

    async with app:
        manager = await app.manager()
        job = await stuck.submit()
        await manager.claim("vanished", lease_seconds=30)
        await manager.expire_worker("vanished")
        async with working(app):
            await reached(app, job, State.DEAD)
        found = await manager.failed_attempts(job.id)
    assert [(one.attempt, one.code, one.traceback) for one in found] == [
        (1, "worker_unresponsive", None),
        (2, "execution_timeout", None),
    ]


class _Biting(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def _nest(depth: int) -> None:
    if depth:
        _nest(depth - 1)
    raise ValueError("é" * 3000 + "\0\ud800")


def _raise(error: Exception | None) -> None:
    if error is not None:
        raise error
    _nest(300)


def _raised(error: Exception | None = None) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any
        _raise(error)
    return caught.value


def test_a_traceback_is_bounded_and_can_be_stored() -> None:
    told = traceback_of(_raised())
    assert told is not None
    assert len(told.encode()) <= TRACEBACK_BYTES_MAX
    assert told.startswith("…\n")
    assert "\0" not in told


@pytest.mark.parametrize(
    "error", [_Biting(), RecursionError("deep"), ExceptionGroup("g", [OSError()])]
)
def test_an_error_that_cannot_be_shown_is_no_error_of_ours(error: Exception) -> None:
    told = traceback_of(_raised(error))
    assert told is None or "in _raise" in told


def test_an_error_of_nobodys_code_has_none() -> None:
    assert traceback_of(ValueError("never raised")) is None
    assert traceback_of(_raised(TemporaryError("meant"))) is None
