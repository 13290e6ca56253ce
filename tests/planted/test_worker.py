"""Deliberate defects of the worker and the application: their tests must catch every one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from unittest import mock

import pytest

from tests.app import test_connections, test_options
from tests.planted import slots, worker
from tests.worker import poisons, running, test_failing, test_poisons, test_presence

ENOUGH = ("its text raises", "its class raises", "StopIteration")


async def swallow(_: str) -> None:
    for task in (poisons.on_loop, poisons.in_thread):
        test_poisons.check(await test_poisons.swallowed("memory:", task, ENOUGH))


async def refuse_options(_: str) -> None:
    test_options.test_a_wrong_option_is_refused_where_the_task_is_made({"retry": 5})


async def refuse_hooks(_: str) -> None:
    test_options.test_a_hook_that_cannot_be_told_is_refused_when_it_is_named()


async def leak_nothing(url: str) -> None:
    await asyncio.to_thread(test_connections.test_a_loop_for_each_call_leaks_nothing, url)


async def stay_present(url: str) -> None:
    with test_presence.often(), mock.patch.object(running, "PATIENCE_SECONDS", 1.0):
        await test_presence.test_a_worker_without_room_is_seen_with_all_its_slots_taken(url)


CHECKS: dict[str, Callable[[str], Awaitable[None]]] = {
    worker.POISONS: swallow,
    worker.OPTIONS: refuse_options,
    worker.HOOKS: refuse_hooks,
    worker.NULL: test_options.test_a_task_without_arguments_runs_without_a_payload,
    worker.DRAIN: test_failing.test_drain_keeps_its_leases,
    worker.LEAKS: leak_nothing,
    slots.PRESENCE: stay_present,
}
DEFECTS = worker.OF_THE_WORKER | slots.OF_THE_WORKER


@pytest.mark.parametrize("name", DEFECTS)
async def test_the_test_objects(name: str, tmp_path: Path) -> None:
    check, defect = DEFECTS[name]
    url = f"sqlite:///{tmp_path / 'jobs.db'}" if check == worker.LEAKS else "memory:"
    with defect():
        try:
            await CHECKS[check](url)
        except (Exception, pytest.fail.Exception):  # noqa: BLE001 - any failure is an objection
            return
    raise AssertionError(f"no test notices that {name}")
