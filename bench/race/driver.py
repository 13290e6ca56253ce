"""The submitting side of a system, in the system's own environment: told what to do in lines of JSON.

    {"do": "bulk", "first": 0, "jobs": 1000}   ->   {"seconds": 0.05}

A module of `systems` has its `System` as SYSTEM and, where the system brings no worker, a loop `work`. Only
the standard library here.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

URL_VARIABLE = "RACE_URL"
PAYLOAD_VARIABLE = "RACE_PAYLOAD_BYTES"
BULK_JOBS = 1000

URL = os.environ.get(URL_VARIABLE, "")
FILLING = "x" * int(os.environ.get(PAYLOAD_VARIABLE, "0"))
"""Rides along with every job's number."""


class System:
    """How jobs get into one system. What it cannot do it leaves out."""

    async def open(self) -> None:
        """Connect, and make what is needed."""

    async def reset(self) -> None:
        """Empty the queue."""
        raise NotImplementedError

    async def submit(self, job: int) -> None:
        raise NotImplementedError

    async def submit_many(self, jobs: Sequence[int]) -> None:
        """By the system's own call for many."""
        for job in jobs:
            await self.submit(job)

    async def left(self) -> int:
        """Jobs that the store does not know to be done."""
        raise NotImplementedError


async def _answer(system: System, order: dict[str, Any]) -> dict[str, Any]:
    jobs = range(order.get("first", 0), order.get("first", 0) + order.get("jobs", 0))
    start = time.monotonic()
    match order["do"]:
        case "reset":
            await system.reset()
        case "each":
            for job in jobs:
                await system.submit(job)
        case "bulk":
            for first in range(0, len(jobs), BULK_JOBS):
                await system.submit_many(jobs[first : first + BULK_JOBS])
        case "left":
            return {"left": await system.left()}
        case unknown:
            raise ValueError(unknown)
    return {"seconds": time.monotonic() - start, "start": start}


async def _serve(system: System) -> None:
    await system.open()
    loop = asyncio.get_running_loop()
    print(json.dumps({"ready": True}), flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            answer = await _answer(system, json.loads(line))
        except Exception as error:  # noqa: BLE001 - it is told, whatever it is
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def main() -> None:
    """`python -m bench.race.driver with_huey [worker]`; the latter where the system has none of its own."""
    name, *role = sys.argv[1:]
    module = importlib.import_module(f"bench.race.systems.{name}")
    work = module.work() if role == ["worker"] else _serve(module.SYSTEM())
    try:
        import uvloop  # noqa: PLC0415 - not in every environment
    except ImportError:
        asyncio.run(work)
    else:  # as each system recommends
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(work)
    os._exit(0)


if __name__ == "__main__":
    main()
