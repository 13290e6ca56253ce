"""Which workers have asked for jobs lately, each in the name space of its tenant.

A tenant's worker is written down under its tenant and its name, so that nobody takes its place by calling a
worker of his own the same. What divides the two stands in no name: names are printable.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter

from msgspec.structs import replace

from headrace.stores.base import JobStore, WorkerSeen

_DIVIDER = "\x1f"


async def announce(store: JobStore, seen: WorkerSeen) -> None:
    if seen.tenant is not None:
        seen = replace(seen, worker=f"{seen.tenant}{_DIVIDER}{seen.worker}")
    await store.announce(seen)


async def workers(store: JobStore, since: datetime) -> Sequence[WorkerSeen]:
    """Those that asked at or after `since`, in order of name; who asks for several tenants, once for each."""
    found = [
        replace(seen, worker=seen.worker.rpartition(_DIVIDER)[2])
        for seen in await store.workers(since)
    ]
    return sorted(found, key=attrgetter("worker"))
