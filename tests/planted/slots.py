"""Defects of what workers say of themselves: that they are there, and how many slots are taken."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from headrace.manager import explanation, leases, presence
from headrace.manager.context import Context
from headrace.stores.base import WorkerSeen
from headrace.stores.memory import MemoryStore
from headrace.worker.supply import Supply
from tests.planted.contracts import Planted
from tests.planted.defect import Defect, patched


async def what_was_said_before_stays(self: MemoryStore, worker: WorkerSeen) -> None:
    last = self._tables.queues._workers.get(worker.worker)
    await right_announce(self, replace(worker, slots=worker.slots or (last and last.slots)))


right_announce = MemoryStore.announce


def those_that_say_it(context: Context, takers: Sequence[WorkerSeen]) -> presence.Slots | None:
    own = all(context.tenant in (None, one.tenant) for one in takers)
    return presence.slots(takers) if own else None


def whosever_they_are(context: Context, takers: Sequence[WorkerSeen]) -> presence.Slots | None:
    told = all(one.slots is not None for one in takers)
    return presence.slots(takers) if told else None


DEFECTS: dict[str, Defect] = {
    "a worker that does not say its slots any more keeps them": patched(
        MemoryStore, "announce", what_was_said_before_stays
    ),
}

WITHIN_A_PART: dict[str, Planted] = {
    "each claim writes down how many slots are taken": Planted(
        "manager", "announce", patched(leases, "ANNOUNCE_SECONDS", 0.0)
    ),
    "a worker that does not say its slots is not counted": Planted(
        "manager", "explain", patched(explanation, "slots_of", those_that_say_it)
    ),
    "a tenant is told how busy the operator's workers are": Planted(
        "manager", "side channels", patched(explanation, "slots_of", whosever_they_are)
    ),
}


async def silent(self: Supply) -> None:
    await asyncio.Event().wait()


PRESENCE = "presence"
OF_THE_WORKER: dict[str, tuple[str, Callable[[], contextlib.AbstractContextManager[Any]]]] = {
    "a worker without room says nothing": (PRESENCE, patched(Supply, "stay_present", silent)),
}
"""By the test that must object."""
