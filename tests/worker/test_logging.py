"""What a worker's log tells of failures, and what it keeps to itself."""

from __future__ import annotations

import logging

import pytest

from headrace import Headrace, KeyRing, PermanentError
from headrace.crypto import new_key
from headrace.worker import Settings, Worker

SECRET = "the PIN is 1234"


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_failure_is_logged_with_its_traceback_unless_it_is_secret(
    caplog: pytest.LogCaptureFixture, encrypted: bool
) -> None:
    keys = KeyRing.parse(new_key("k1")) if encrypted else None
    app = Headrace("memory:", keys=keys)

    @app.task(max_attempts=1)
    async def work(known: bool) -> None:
        raise PermanentError(SECRET, code="NO_CARD") if known else KeyError(SECRET)

    caplog.set_level(logging.INFO, "headrace.worker")
    async with app:
        jobs = await app.submit_many([work.spec(known=False), work.spec(known=True)])
        await Worker(app, Settings(maintenance=False)).drain()
    unknown, known = [one for one in caplog.records if " failed, attempt 1: " in one.message]
    assert (unknown.levelname, known.levelname) == ("WARNING", "INFO")
    assert vars(known)["job_id"] == jobs[1].id
    assert vars(known)["error_code"] == "NO_CARD"
    assert vars(unknown)["category"] == "temporary"
    assert known.exc_info is None
    if encrypted:
        assert SECRET not in caplog.text
        assert unknown.message.endswith(": KeyError (encrypted)")
    else:
        assert known.message.endswith(f": NO_CARD: {SECRET}")
        assert unknown.message.endswith(f": KeyError: {SECRET!r}")
        assert "Traceback" in caplog.text
