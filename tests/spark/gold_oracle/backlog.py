"""How many jobs waited and ran at the end of each minute.

Each job goes through its events: whether it waits, is ready or runs changes only with one of them, or when
it becomes due between two. Then every minute with a change adds up where each job stood at its end.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from headrace.model import CLAIMABLE, LEASED, TERMINAL, State
from tests.spark.gold_oracle.grouping import Groups, minute_of
from tests.spark.oracle import Row

_NEVER = datetime.max.replace(tzinfo=UTC)


class _Stand(NamedTuple):
    waiting: bool
    ready: bool
    running: bool


_GONE = _Stand(waiting=False, ready=False, running=False)


def rows(jobs: Iterable[Row]) -> list[Row]:
    by_queue: dict[str, list[list[tuple[datetime, _Stand]]]] = {}
    for job in jobs:
        by_queue.setdefault(job["queue"], []).append(_changes(job))
    groups = Groups(waiting=0, ready=0, running=0)
    for queue, changes_of_jobs in by_queue.items():
        minutes = sorted({minute_of(at) for changes in changes_of_jobs for at, _ in changes})
        for minute in minutes:
            groups.row(queue=queue, minute=minute)
        for changes in changes_of_jobs:
            for (at, stand), (until, _) in itertools.pairwise([*changes, (_NEVER, _GONE)]):
                if stand == _GONE:
                    continue
                begin = bisect_left(minutes, minute_of(at))
                end = bisect_left(minutes, minute_of(until))
                for minute in minutes[begin:end]:
                    level = groups.row(queue=queue, minute=minute)
                    level["waiting"] += stand.waiting
                    level["ready"] += stand.ready
                    level["running"] += stand.running
    return groups.rows()


def _changes(job: Row) -> list[tuple[datetime, _Stand]]:
    """When the job came to stand otherwise, and how it stood from then on."""
    found: list[tuple[datetime, _Stand]] = []
    stood = _GONE
    for event, after in itertools.zip_longest(job["timeline"], job["timeline"][1:]):
        left_at = _NEVER if after is None else after["at"]
        for at in (event["at"], event["run_at"]):
            if not event["at"] <= at <= left_at:
                continue  # due before, or gone before it was due
            stand = _stand(State(event["after"]), due=event["run_at"] <= at)
            if stand != stood:
                found.append((at, stand))
                stood = stand
    return found


def _stand(state: State, *, due: bool) -> _Stand:
    return _Stand(
        waiting=state not in TERMINAL and state not in LEASED,
        ready=state in CLAIMABLE and due,
        running=state in LEASED,
    )
