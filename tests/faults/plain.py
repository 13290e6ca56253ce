"""An application as users write them, for the tests of signals and of poison."""

from __future__ import annotations

import asyncio
import os
import signal

from headrace import Headrace, Policy

app = Headrace("memory:", policies=Policy(lease_seconds=2.0))


@app.task
async def sleep(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "slept"


@app.task(max_attempts=3)
async def poison() -> None:
    """Takes its process along, every time."""
    os.kill(os.getpid(), signal.SIGKILL)
