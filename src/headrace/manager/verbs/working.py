"""What a worker says: claims, outcomes, heartbeats, notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from headrace import validation
from headrace.completion import Occasion
from headrace.duration import Seconds
from headrace.errors import HeadraceError, TemporaryError
from headrace.input_checks import guarding
from headrace.manager import (
    deadlines,
    leases,
    occasions,
    settlement,
)
from headrace.manager.changes import Changed, Settled
from headrace.manager.settlement import Outcome
from headrace.manager.verbs.base import Tags, Verbs
from headrace.model import (
    Category,
    Job,
    Lease,
)
from headrace.stores.base import (
    Fence,
)


@guarding(leaving=("outcomes",))
class Working(Verbs):
    """What a worker does with jobs."""

    _claims: leases.Claims
    scoped: Callable[[str], Working]
    """The same store seen by one tenant."""

    async def occasion(self, job: Job) -> Occasion | None:
        """What the handler of a hook or of a batch's callback is told; None for any other job.

        For whoever runs handlers: a job that is not `wanted` is to be completed without one.
        """
        return await occasions.occasion(self._context, job)

    async def claim(
        self,
        worker: str,
        *,
        queues: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        tags: Tags = (),
        limit: int = 1,
        tenant: str | None = None,
        lease_seconds: Seconds | None = None,
        due_by: datetime | None = None,
    ) -> tuple[Job, ...]:
        """Lease up to `limit` due jobs that match every filter, most urgent and oldest first.

        With `due_by` a job counts as due up to that time instead of the present, and may be claimed ahead
        of its time: for who keeps run_at as an order, not as a wait.
        """
        claimed = await self.claim_ahead(
            worker,
            queues=queues,
            types=types,
            tags=tags,
            limit=limit,
            tenant=tenant,
            lease_seconds=lease_seconds,
            due_by=due_by,
            look_ahead=False,
        )
        return claimed.jobs

    async def claim_ahead(
        self,
        worker: str,
        *,
        queues: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        tags: Tags = (),
        limit: int = 1,
        tenant: str | None = None,
        lease_seconds: Seconds | None = None,
        due_by: datetime | None = None,
        look_ahead: bool = True,
        slots: int | None = None,
        busy: int | None = None,
    ) -> leases.Claimed:
        """Claim as `claim` does, and say when it is worth while to ask again.

        When a limit has its next token comes with every answer. When the next job becomes due is asked
        for with `look_ahead`, and only if there were fewer jobs than `limit`: one more look at the store.
        `slots` and `busy` are what `announce` is told.
        """
        if tenant is not None and tenant != self.tenant:
            if self.tenant is not None:
                return leases.Claimed(())  # another tenant's jobs do not exist here
            return await self.scoped(tenant).claim_ahead(
                worker,
                queues=queues,
                types=types,
                tags=tags,
                limit=limit,
                lease_seconds=lease_seconds,
                due_by=due_by,
                look_ahead=look_ahead,
                slots=slots,
                busy=busy,
            )
        return await self._claims.claim(
            worker,
            queues=queues,
            types=types,
            tags=tags,
            limit=limit,
            lease_seconds=lease_seconds,
            due_by=due_by,
            look_ahead=look_ahead,
            slots=slots,
            busy=busy,
        )

    async def announce(
        self,
        worker: str,
        *,
        queues: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        tags: Tags = (),
        slots: int | None = None,
        busy: int | None = None,
    ) -> None:
        """Say that the worker is there, and for which jobs, though it does not claim: its slots are taken.

        A claim says so itself. Written down every five seconds at most, however often it is said; `workers`
        tells it. `slots`: how many handlers the worker runs at once; `busy`: how many it runs now.
        """
        await self._claims.announce(
            worker, queues=queues, types=types, tags=tags, slots=slots, busy=busy
        )

    async def settle(self, outcomes: Sequence[Outcome]) -> Settled:
        """Record the ends of many attempts in one step; each stands or is refused alone."""
        return await deadlines.settle(self._context, outcomes)

    async def complete(self, job_id: str, token: str | None, result: Any = None) -> Changed:
        """The attempt succeeded."""
        return await self._settle(settlement.Completed(job_id=job_id, token=token, result=result))

    async def fail(
        self,
        job_id: str,
        token: str | None,
        error: BaseException | str,
        *,
        category: Category | None = None,
        code: str | None = None,
        retry_after: Seconds | None = None,
        retry_at: datetime | None = None,
    ) -> Changed:
        """The attempt failed. A typed error (TemporaryError, PermanentError) brings its own category."""
        if retry_after is None and isinstance(error, TemporaryError):
            retry_after = error.retry_after
        failure = settlement.failure_of(error, category=category, code=code)
        return await self._settle(
            settlement.Failed(
                job_id=job_id,
                token=token,
                failure=failure,
                retry_after=retry_after,
                retry_at=retry_at,
            )
        )

    async def snooze(
        self,
        job_id: str,
        token: str | None,
        *,
        until: datetime | None = None,
        seconds: Seconds | None = None,
    ) -> Changed:
        """Run it again later, at no cost to its budget."""
        when = settlement.later(self._context.now(), until=until, seconds=seconds)
        return await self._settle(settlement.Snoozed(job_id=job_id, token=token, until=when))

    async def release(self, job_id: str, token: str | None) -> Changed:
        """Give it back unfinished, at no cost to its budget; it goes to the front of its line."""
        return await self._settle(settlement.Released(job_id=job_id, token=token))

    async def stop(self, job_id: str, token: str | None, message: str = "stopped") -> Changed:
        """The worker ended it on request: cancelled."""
        validation.check_message(message, "the message")
        return await self._settle(settlement.Stopped(job_id=job_id, token=token, message=message))

    async def acknowledge_cancel(
        self, job_id: str, token: str | None, *, was_executing: bool
    ) -> Changed:
        """The worker's answer to a cancellation: cancelled, or (it did not have the job) abandoned."""
        return await self._settle(
            settlement.CancelAcknowledged(job_id=job_id, token=token, was_executing=was_executing)
        )

    async def _settle(self, outcome: Outcome) -> Changed:
        settled = await deadlines.settle(self._context, [outcome])
        (answer,) = settled.outcomes
        if isinstance(answer, HeadraceError):
            raise answer
        return Changed((answer,), settled.freed)

    async def heartbeat(self, held: Sequence[Lease]) -> leases.Heartbeats:
        """Extend many leases in one step. A lease that does not hold is explained, not raised."""
        return await leases.heartbeat(self._context, held)

    async def progress(
        self, job_id: str, token: str, fraction: float, note: str | None = None
    ) -> None:
        """How far the attempt is, 0 to 1. Fenced; no event."""
        fence = Fence(validation.check_id(job_id), token)
        await leases.annotate(self._context, fence, progress=fraction, note=note)

    async def checkpoint(self, job_id: str, token: str, value: Any) -> None:
        """What the next attempt should know. Fenced; no event; survives the attempt."""
        await leases.annotate(
            self._context, Fence(validation.check_id(job_id), token), checkpoint=value
        )

    async def keep_log(self, job_id: str, token: str, lines: Sequence[Any]) -> None:
        """The job's log lines, in place of those before. Fenced; no event; survives the attempt."""
        await leases.annotate(
            self._context, Fence(validation.check_id(job_id), token), log=list(lines)
        )
