"""Reading: jobs page by page, how many there are, and the event log."""

from __future__ import annotations

import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any

import msgspec

from headrace import validation
from headrace.errors import InvalidCursor
from headrace.manager.context import Context
from headrace.model import CLAIMABLE, Event, Job, State
from headrace.stores.base import FIND_LIMIT_MAX, EventQuery, Query, Tally

SEQ_MAX = 2**62
PAGE_JOBS = 100
STEP_JOBS = 1000
"""What is read at once where all are gone through."""
POLL_SECONDS = 1.0
"""How long a follower waits at most before it looks by itself: a lost hint costs this much."""


class Page(msgspec.Struct, frozen=True):
    """Some jobs, and where to go on. `cursor` None: that was all."""

    jobs: tuple[Job, ...]
    cursor: str | None

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)


Read = Callable[[str | None, int], Coroutine[Any, Any, Page]]
"""One page: from the cursor on, so many jobs at most."""


class Found:
    """The jobs that match. `await` reads one page of them; `async for` goes through all, page by page.

    Without a limit a page has 100 jobs, and the iteration ends when there are no more: a job that is
    submitted meanwhile comes, too, and one that changed is given as it is then. A limit is what either
    gives at most.
    """

    def __init__(self, read: Read, *, limit: int | None, cursor: str | None) -> None:
        self._read = read
        self._limit = limit
        self._cursor = cursor

    def __await__(self) -> Generator[Any, None, Page]:
        return self._read(
            self._cursor, PAGE_JOBS if self._limit is None else self._limit
        ).__await__()

    async def __aiter__(self) -> AsyncIterator[Job]:
        cursor, left = self._cursor, self._limit
        while left is None or left > 0:
            size = STEP_JOBS if left is None else min(STEP_JOBS, left)
            page = await self._read(cursor, size)
            for job in page.jobs:
                yield job
            cursor = page.cursor
            if cursor is None:
                return
            if left is not None:
                left -= len(page.jobs)


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs match, by state and by queue."""

    total: int
    states: Mapping[State, int]
    """Every state, zeros included."""
    ready: int
    """Claimable now."""
    delayed: int
    """Claimable later."""
    failures: int
    """Failed attempts of all of them."""
    tallies: tuple[Tally, ...]
    """The same by tenant, queue and state."""


async def find(context: Context, query: Query, cursor: str | None) -> Page:
    """One page; pages are stable: a job that appears or changes meanwhile moves no other job."""
    validation.check_limit(query.limit, "limit", maximum=FIND_LIMIT_MAX)
    direction = "d" if query.newest_first else "a"
    after = None if cursor is None else seq_of(cursor, direction)
    jobs = await context.store.find(
        msgspec.structs.replace(query, tenant=context.tenant, after_seq=after)
    )
    more = len(jobs) == query.limit
    return Page(tuple(jobs), cursor_at(jobs[-1], direction) if more else None)


async def stats(context: Context, *, queues: Sequence[str] | None, tags: Sequence[str]) -> Stats:
    tallies = await context.store.count(
        context.now(), tenant=context.tenant, queues=queues, tags=tags
    )
    states = dict.fromkeys(State, 0)
    for tally in tallies:
        states[tally.state] += tally.jobs
    waiting = sum(states[state] for state in CLAIMABLE)
    delayed = sum(tally.delayed for tally in tallies)
    return Stats(
        total=sum(states.values()),
        states=states,
        ready=waiting - delayed,
        delayed=delayed,
        failures=sum(tally.failures for tally in tallies),
        tallies=tuple(tallies),
    )


async def follow(
    context: Context, *, after: str, job_id: str | None, idle_seconds: float | None
) -> AsyncIterator[Event]:
    """Events after the cursor, then live ones as they come, until none came for `idle_seconds`."""
    cursor = after
    quiet_since = time.monotonic()
    while True:
        end = await context.store.tail()
        events = await context.store.events(
            EventQuery(after=cursor, tenant=context.tenant, job_id=job_id)
        )
        for event in events:
            yield event
            cursor = event.cursor
        if events:
            quiet_since = time.monotonic()
            continue
        # Everything up to `end` was looked at and is somebody else's: not to be walked again.
        cursor = end or cursor
        left = POLL_SECONDS
        if idle_seconds is not None:
            left = min(left, idle_seconds - (time.monotonic() - quiet_since))
            if left <= 0:
                return
        await context.store.wait(cursor, left)


def cursor_at(job: Job, direction: str) -> str:
    """Where a page goes on after this job."""
    return f"{direction}{job.seq}"


def seq_of(cursor: object, direction: str) -> int:
    if (
        not isinstance(cursor, str)
        or cursor[:1] != direction
        or not cursor[1:].isdecimal()
        or not cursor.isascii()
    ):
        raise InvalidCursor(
            f"{validation.told(cursor)} is not a cursor of this query; start without one"
        )
    return min(int(cursor[1:]), SEQ_MAX)
