"""Reading the event log and the rows of a store that has come to rest, for the checker."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from headrace.manager import JobManager
from headrace.model import Edge, Event, EventKind, Job
from headrace.stores.base import EventQuery, Query
from headrace.testing.checker.histories import Client, History, Reading

PAGE = 2000
REREADINGS = 20
REREAD_EVENTS_MAX = 2000


async def collect(
    manager: JobManager,
    *,
    client: Client,
    readings: Sequence[Reading] = (),
    dice: random.Random,
    **options: Any,
) -> History:
    """The whole history. The log is read once in full, and again from random places in random pages.

    `readings`: what readers saw while the log was written. `options`: as in `History`.
    """
    events = await _whole_log(manager)
    jobs = await _all_jobs(manager)
    return History(
        client=client,
        events=events,
        jobs={job.id: job for job in jobs},
        edges=await _all_edges(manager, events),
        readings=[*readings, *await _read_again(manager, events, dice)],
        **options,
    )


async def _whole_log(manager: JobManager) -> list[Event]:
    events: list[Event] = []
    cursor = ""
    while page := await manager.store.events(EventQuery(after=cursor, limit=PAGE)):
        events += page
        cursor = page[-1].cursor
    return events


async def _read_again(
    manager: JobManager, events: Sequence[Event], dice: random.Random
) -> list[Reading]:
    readings = []
    for _ in range(REREADINGS):
        after = cursor = dice.choice(["", *(event.cursor for event in events)])
        seqs: list[int] = []
        while len(seqs) < REREAD_EVENTS_MAX:
            # One at a time, a few, or many: a page must not show where it was cut.
            limit = dice.choice([1, dice.randint(2, 20), dice.randint(100, 1000)])
            page = await manager.store.events(EventQuery(after=cursor, limit=limit))
            if not page:
                break
            seqs += [event.seq for event in page]
            cursor = page[-1].cursor
        readings.append(Reading(after=after, seqs=seqs))
    return readings


async def _all_jobs(manager: JobManager) -> list[Job]:
    jobs: list[Job] = []
    after: int | None = None
    while page := await manager.store.find(Query(after_seq=after, limit=PAGE)):
        jobs += page
        after = page[-1].seq
    return jobs


async def _all_edges(manager: JobManager, events: Sequence[Event]) -> list[Edge]:
    """Into every job that was born with dependencies."""
    children = [
        event.job_id
        for event in events
        if event.kind is EventKind.ENQUEUED and b'"dependencies"' in (event.detail_json or b"")
    ]
    return [edge for child in children for edge in await manager.store.edges(child_id=child)]
