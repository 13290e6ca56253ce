"""Counting jobs: from the lanes' own counts, along a tag, or one by one where that is the promise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from headrace.clock import to_us
from headrace.model import State
from headrace.stores.base import Backlog, Held, Tally
from headrace.stores.sqlite import tags
from headrace.stores.sqlite.lanes import STATES
from headrace.stores.sqlite.rows import STATE_OF
from headrace.stores.sqlite.session import Snapshot
from headrace.stores.sqlite.sql import json_list_or_none, query

_COUNT = query("count")
_DELAYED = query("count_delayed")
_TAGGED = query("count_tagged")
_HELD = query("held")
_BACKLOG = query("backlog")

_HELD_DECODER = msgspec.json.Decoder(list[tuple[int, int]])

_CLAIMABLE = (State.PENDING, State.RETRYING, State.LOST)  # as count_delayed.sql lists them


def count(
    view: Snapshot,
    now: datetime,
    tenant: str | None,
    queues: Sequence[str] | None,
    wanted_tags: Sequence[str],
) -> list[Tally]:
    bound: dict[str, Any] = {
        "now": to_us(now),
        "tenant": tenant,
        "queues": json_list_or_none(queues),
    }
    if wanted_tags:
        driver = tags.rarest(view, wanted_tags)
        return _count_tagged(view, {**bound, "tag": driver.tag, "others": driver.others})
    return _count_lanes(view, bound)


def held(view: Snapshot, now: datetime, queues: Sequence[str]) -> list[Held]:
    (answer,) = view.connection.execute(_HELD, {"now": to_us(now)}).fetchone()
    leases = _HELD_DECODER.decode(answer)
    view.lanes.learn(lane for lane, _ in leases)
    sums: Counter[tuple[str, str, str | None]] = Counter()
    for lane, jobs in leases:
        key = view.lanes.key(lane)
        if key.queue in queues:
            sums[key.tenant, key.queue, key.limit_key] += jobs
    return [
        Held(tenant=tenant, queue=queue, limit_key=limit_key, jobs=jobs)
        for (tenant, queue, limit_key), jobs in sums.items()
    ]


def backlog(view: Snapshot, tenant: str | None, queue: str | None) -> Backlog:
    bound = {"tenant": tenant, "queue": queue}
    jobs, payload_bytes = view.connection.execute(_BACKLOG, bound).fetchone()
    return Backlog(jobs, payload_bytes)


def _count_lanes(view: Snapshot, bound: dict[str, Any]) -> list[Tally]:
    delayed = _count_delayed(view, bound)
    tallies: list[tuple[str, str, State, int, int]] = []
    for tenant, queue, *sums in view.connection.execute(_COUNT, bound):
        counts, failures = sums[: len(STATES)], sums[len(STATES) :]
        tallies += [
            (tenant, queue, state, jobs, failed)
            for state, jobs, failed in zip(STATES, counts, failures, strict=True)
            if jobs
        ]
    return [
        Tally(
            tenant=tenant,
            queue=queue,
            state=state,
            jobs=jobs,
            delayed=delayed[tenant, queue, state],
            failures=failed,
        )
        for tenant, queue, state, jobs, failed in sorted(tallies)
    ]


def _count_delayed(view: Snapshot, bound: dict[str, Any]) -> Counter[tuple[str, str, State]]:
    """Claimable jobs that are not due yet."""
    delayed: Counter[tuple[str, str, State]] = Counter()
    rows = view.connection.execute(_DELAYED, bound).fetchall()
    view.lanes.learn(lane for lane, *_ in rows)
    for lane, *counts in rows:
        key = view.lanes.key(lane)
        for state, jobs in zip(_CLAIMABLE, counts, strict=True):
            delayed[key.tenant, key.queue, state] += jobs
    return delayed


def _count_tagged(view: Snapshot, bound: dict[str, Any]) -> list[Tally]:
    return [
        Tally(
            tenant=tenant,
            queue=queue,
            state=STATE_OF[state],
            jobs=jobs,
            delayed=delayed,
            failures=failures,
        )
        for tenant, queue, state, jobs, delayed, failures in view.connection.execute(_TAGGED, bound)
    ]
