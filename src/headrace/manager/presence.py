"""Which workers have been heard of lately, and how busy they are, each in the name space of its tenant.

A tenant's worker is written down under its tenant and its name, so that nobody takes its place by calling a
worker of his own the same. What divides the two stands in no name: names are printable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from headrace.stores.base import JobStore, WorkerSeen

_DIVIDER = "\x1f"


class Slots(msgspec.Struct, frozen=True):
    """How many handlers workers run at once, and how many they run: as of when each was last heard of."""

    busy: int
    held: int

    def __str__(self) -> str:
        return f"{self.busy} of {self.held}"


async def announce(store: JobStore, seen: WorkerSeen) -> None:
    if seen.tenant is not None:
        seen = replace(seen, worker=f"{seen.tenant}{_DIVIDER}{seen.worker}")
    await store.announce(seen)


async def workers(store: JobStore, since: datetime) -> Sequence[WorkerSeen]:
    """Those heard of at or after `since`, in order of name; who asks for several tenants, once for each."""
    found = [
        replace(seen, worker=seen.worker.rpartition(_DIVIDER)[2])
        for seen in await store.workers(since)
    ]
    return sorted(found, key=attrgetter("worker"))


def is_draining(worker: WorkerSeen) -> bool:
    """It asks for no more jobs, though it is still there."""
    return worker.process is not None and worker.process.draining


def slots(seen: Iterable[WorkerSeen]) -> Slots | None:
    """Of those together that said it; None: nobody did."""
    told = [
        Slots(one.busy, one.slots) for one in seen if one.busy is not None and one.slots is not None
    ]
    return Slots(sum(one.busy for one in told), sum(one.held for one in told)) if told else None
