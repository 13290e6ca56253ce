"""The levels of an earlier minute: what there is now, less what has come since, and what has gone added back.

Counted from the same minutes as the charts, so it is exact to the minute, up to where the log was counted.
What has ended is deleted sooner or later, so only what waits and runs can be told of the past.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.dashboard.views.depths import Depth
from headrace.manager import History
from headrace.rollups import Counts

ENDS = ("completed", "failed", "dead", "cancelled")


@dataclass(frozen=True)
class Level:
    """One queue at the end of a minute, and what happened in that minute."""

    queue: str
    waiting: int
    running: int
    came: int
    ended: int
    retried: int


@dataclass(frozen=True)
class Then:
    at: datetime
    """The end of the minute that is looked at."""
    earlier: datetime | None
    later: datetime | None
    moments: Sequence[datetime]
    index: int
    levels: Sequence[Level]

    @property
    def waiting(self) -> int:
        return sum(one.waiting for one in self.levels)

    @property
    def running(self) -> int:
        return sum(one.running for one in self.levels)


def levels_at(
    asked: datetime | None, now: Sequence[Depth], history: History, moments: Sequence[datetime]
) -> Then | None:
    """None: live. A moment outside of what is known counts as the nearest one inside."""
    if asked is None or not moments:
        return None
    index = max([i for i, at in enumerate(moments) if at <= asked], default=0)
    step = timedelta(seconds=history.bucket_seconds)
    minute = moments[index]
    since: dict[str, Counts] = {}
    within: dict[str, Counts] = {}
    for one in history.buckets:
        into = since if one.at > minute else within if one.at == minute else None
        if into is not None:
            queue = one.counts.queue
            into.setdefault(queue, Counts(one.counts.tenant, queue)).merge(one.counts)
    depths: dict[str, Depth] = {}
    for row in now:
        assert row.queue is not None
        whole = depths.setdefault(row.queue, Depth(queue=row.queue))
        whole.states.update(row.states)
    levels = [
        _level(queue, depth, since.get(queue), within.get(queue)) for queue, depth in depths.items()
    ]
    return Then(
        minute + step,
        moments[index - 1] if index else None,
        moments[index + 1] if index + 1 < len(moments) else None,
        moments,
        index,
        sorted(levels, key=lambda one: (-one.waiting - one.running, one.queue)),
    )


def _level(queue: str, depth: Depth, since: Counts | None, within: Counts | None) -> Level:
    """Each attempt that has started since was not running then; each that has ended since was."""
    unchanged = Counts(queue, queue)
    since, within = since or unchanged, within or unchanged
    running = depth.running - since.started + since.run.count
    open_then = depth.open - since.submitted + _ended(since)
    return Level(
        queue=queue,
        waiting=max(0, open_then - max(0, running)),
        running=max(0, running),
        came=within.submitted,
        ended=_ended(within),
        retried=within.retried,
    )


def _ended(counts: Counts) -> int:
    ended: int = sum(getattr(counts, name) for name in ENDS) + counts.abandoned
    return ended
