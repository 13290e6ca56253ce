"""The state of the queues at a glance: for dashboards, metrics and `headrace top`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from headrace.manager.context import Context
from headrace.stores.base import ClaimRequest, Tally


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs there are, and how long the oldest of those that are due has waited."""

    at: datetime
    tallies: tuple[Tally, ...]
    oldest_ready: Mapping[tuple[str, str], float]
    """Seconds, by (tenant, queue); only where something is due."""


async def overview(context: Context) -> Overview:
    now = context.now()
    tallies = await context.store.count(now, tenant=context.tenant)
    request = ClaimRequest(worker="-", now=now, limit=1, nonce="-", tenant=context.tenant)
    oldest: dict[tuple[str, str], float] = {}
    for head in await context.store.heads(request):
        waited = (now - head.run_at).total_seconds()
        place = (head.tenant, head.queue)
        oldest[place] = max(oldest.get(place, 0.0), waited)
    return Overview(at=now, tallies=tuple(tallies), oldest_ready=oldest)
