"""Writes of workers that came too late and were refused: noted, since nothing else remembers them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from headrace.errors import (
    HeadraceError,
    JobCancelled,
    JobTerminal,
    LeaseExpired,
    StaleToken,
    StoreError,
)
from headrace.manager import settlement
from headrace.manager.context import Context
from headrace.manager.ledger import Ledger
from headrace.manager.settlement import Outcome
from headrace.model import Job

logger = logging.getLogger("headrace.manager")

KEEP_DAYS = 7
PER_JOB_MAX = 20
"""On one day."""
LATE = (StaleToken, LeaseExpired, JobTerminal, JobCancelled)
"""What a worker is told whose lease is over."""


class RefusedWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A write of a worker that did not hold the job any more. It has changed nothing."""

    at: datetime
    job_id: str
    tenant: str
    queue: str
    verb: str
    """`complete`, `heartbeat`, `progress` …: what it wanted to write."""
    code: str
    """Why it was refused: `STALE_TOKEN`, `LEASE_EXPIRED`, `JOB_TERMINAL`, `JOB_CANCELLED`."""
    attempt: int | None
    """The attempt that it was written for. None: that is not known."""
    worker: str | None
    """Who wrote it. None: that is not known."""
    held_attempt: int
    """The attempt that the job was at by then."""
    held_by: str | None
    """Who had the job by then, or had it last."""


class RefusedWrites(msgspec.Struct, frozen=True, kw_only=True):
    """Refused writes, the last ones first."""

    writes: tuple[RefusedWrite, ...]
    total: int
    """How many there were in that time, those included that were not noted for want of room."""


LEDGER = Ledger("refusals", RefusedWrite, keep_days=KEEP_DAYS, rows_max=2000, pages_max=1)


_VERBS: Mapping[type, str] = {
    settlement.Completed: "complete",
    settlement.Failed: "fail",
    settlement.Snoozed: "snooze",
    settlement.Released: "release",
    settlement.Stopped: "stop",
    settlement.CancelAcknowledged: "acknowledge_cancel",
}


class Refused(NamedTuple):
    """What a verb of the manager has refused."""

    job_id: str
    verb: str
    error: HeadraceError
    known: Job | None = None
    """The job as whoever wrote had claimed it."""


async def note_outcomes(
    context: Context,
    outcomes: Sequence[Outcome],
    answers: Sequence[Job | HeadraceError],
) -> None:
    """Those of these outcomes that were refused."""
    await note(
        context,
        [
            Refused(outcome.job_id, _VERBS[type(outcome)], answer, outcome.known)
            for outcome, answer in zip(outcomes, answers, strict=True)
            if isinstance(answer, HeadraceError) and type(outcome) in _VERBS
        ],
    )


async def note(context: Context, refused: Iterable[Refused]) -> None:
    """What comes too late; what cannot be noted is let go: the refusal stands."""
    late = [one for one in refused if isinstance(one.error, LATE)]
    if not late:
        return
    try:
        jobs = await context.read(list(dict.fromkeys(one.job_id for one in late)))
        now = context.now()
        page = await LEDGER.read(context, now, now)
        noted = Counter(row.job_id for row in page.rows)
        rows = []
        for one in late:
            noted[one.job_id] += 1
            if one.job_id in jobs and noted[one.job_id] <= PER_JOB_MAX:
                rows.append(_row(jobs[one.job_id], one, now))
        if rows:
            await LEDGER.append(context, rows, now)
    except StoreError:
        logger.debug("refused writes were not noted", exc_info=True)


async def find(context: Context, since: datetime, job_id: str | None, limit: int) -> RefusedWrites:
    """Those of the manager's tenant, or of all."""
    now = context.now()
    page = await LEDGER.read(context, max(since, now - timedelta(days=KEEP_DAYS)), now)
    found = [
        row
        for row in page.rows
        if row.at >= since and context.tenant in (None, row.tenant) and job_id in (None, row.job_id)
    ]
    # How many of the others' were not noted is nobody's business.
    dropped = page.dropped if context.tenant is None and job_id is None else 0
    return RefusedWrites(writes=tuple(found[::-1][:limit]), total=len(found) + dropped)


def _row(job: Job, refused: Refused, now: datetime) -> RefusedWrite:
    known = refused.known
    return RefusedWrite(
        at=now,
        job_id=job.id,
        tenant=job.tenant,
        queue=job.queue,
        verb=refused.verb,
        code=refused.error.code,
        attempt=None if known is None else known.attempt,
        worker=None if known is None else known.assignee,
        held_attempt=job.attempt,
        held_by=job.assignee,
    )
