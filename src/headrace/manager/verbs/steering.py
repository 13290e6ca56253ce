"""What an operator does to jobs and queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import UNSET, UnsetType

from headrace import lifecycle, validation
from headrace.input_checks import guarded
from headrace.lifecycle import Command
from headrace.limits import QueueLimits
from headrace.manager import (
    bulk,
    cancellation,
    recovery,
    retention,
    rotation,
    submission,
    updates,
)
from headrace.manager.changes import Changed, Order, Settled, change_each, change_one
from headrace.manager.limits import find_limits, remove_limits, set_limits
from headrace.manager.matching import Matching
from headrace.manager.selection import selection
from headrace.manager.verbs.base import Tags, Verbs
from headrace.model import (
    Category,
    Failure,
    Job,
)
from headrace.policy import CancelMode
from headrace.stores.base import (
    Pause,
)


@guarded
class Steering(Verbs):
    """Cancelling, recovering, deleting, pausing, limiting."""

    async def cancel(
        self,
        ids: Iterable[str] = (),
        *,
        tags: Tags = (),
        mode: CancelMode | None = None,
        reason: str | None = None,
        dry_run: bool = False,
    ) -> cancellation.Cancelled:
        """Cancel jobs named by id or tagged with all of `tags` (the union), in one step."""
        chosen = selection(ids, tags)
        mode = None if mode is None else validation.check_word(mode, CancelMode)
        reason = None if reason is None else validation.check_message(reason, "the reason")
        return await cancellation.cancel(
            self._context, chosen, mode=mode, reason=reason, dry_run=dry_run
        )

    async def update(
        self,
        job_id: str,
        *,
        priority: int | UnsetType = UNSET,
        tags: Tags | UnsetType = UNSET,
        add_tags: Tags = (),
        remove_tags: Tags = (),
        correlation_id: str | UnsetType | None = UNSET,
        callback_url: str | UnsetType | None = UNSET,
    ) -> Changed:
        """Change what is said of a job that has not ended, with an event. What is left out stays.

        `tags` are all the job has from now on; `add_tags` and `remove_tags` change some. None takes a
        correlation id or callback url away. A job stays at least as urgent as those it depends on, and
        when it is made more urgent, so is all that waits for it. Whoever runs the job goes on.
        """
        asked = updates.wanted(
            priority=priority,
            tags=tags,
            add_tags=add_tags,
            remove_tags=remove_tags,
            correlation_id=correlation_id,
            callback_url=callback_url,
        )
        return await updates.update(self._context, validation.check_id(job_id), asked)

    async def abandon(self, job_id: str, message: str = "abandoned") -> Changed:
        """Give up on ever knowing how it ended."""
        message = validation.check_message(message, "the message")
        command = lifecycle.Abandon(failure=Failure(message, Category.CANCELLED))
        return await self.change(job_id, lambda _: command)

    async def reschedule(self, job_id: str, run_at: datetime | None = None) -> Changed:
        """Let a job that waits for its time be due at another time (None: now), at no cost to its budget.

        InvalidTransition unless it is pending or retrying; it is pending then. The place in line is by
        the new time.
        """
        when = None if run_at is None else validation.check_time(run_at, "run_at")
        return await self.change(
            job_id, lambda _: lifecycle.Reschedule(run_at=when or self._context.now())
        )

    async def change(self, job_id: str, decide: Callable[[Job], Command]) -> Changed:
        """Carry out a lifecycle command that has no verb of its own here, chosen with the job at hand.

        Nothing checks the token for the caller: a fenced command carries it.
        """
        return await change_one(self._context, Order(validation.check_id(job_id), decide))

    async def change_many(self, orders: Sequence[Order]) -> Settled:
        """The same for many jobs in one step; each stands or is refused alone."""
        return await change_each(self._context, orders)

    async def expire_worker(self, worker: str) -> Changed:
        """The worker is gone: what it holds is lost (claimable again) or abandoned, in one step."""
        return await recovery.expire_worker(self._context, validation.check_name(worker, "worker"))

    async def reset_running(self) -> Changed:
        """Every worker is gone: as expire_worker, for all of them."""
        return await recovery.reset_running(self._context)

    async def delete(self, ids: Iterable[str] = (), *, tags: Tags = ()) -> tuple[Job, ...]:
        """Delete ended jobs: all that were meant or, when one has not ended, none."""
        return await retention.delete(self._context, selection(ids, tags))

    async def redrive(self, ids: Iterable[str] = (), *, tags: Tags = ()) -> submission.Submitted:
        """Run failed, dead or cancelled jobs again, as new jobs linked by previous_id."""
        return await retention.redrive(self._context, selection(ids, tags))

    async def redriven_as(self, job_ids: Sequence[str]) -> Mapping[str, Job]:
        """The job that each of these was redriven as last, by the id of the old one: those there are."""
        jobs = await self._context.read(validation.check_ids(job_ids))
        return await retention.latest_heirs(self._context, list(jobs.values()))

    async def cancel_matching(
        self,
        where: Matching,
        *,
        mode: CancelMode | None = None,
        reason: str | None = None,
        dry_run: bool = False,
        tell: bulk.Tell | None = None,
    ) -> bulk.Bulk:
        """Cancel whatever matches and has not ended, in steps, each job by itself; counts by error.

        `tell` is called after each step. Stopped half way, the same call again does the rest.
        """
        return await bulk.cancel(
            self._context,
            where,
            mode=None if mode is None else validation.check_word(mode, CancelMode),
            reason=None if reason is None else validation.check_message(reason, "the reason"),
            dry_run=dry_run,
            tell=tell,
        )

    async def delete_matching(
        self, where: Matching, *, dry_run: bool = False, tell: bulk.Tell | None = None
    ) -> bulk.Bulk:
        """Delete the ended jobs that match, in steps; counts by error. Their events stay.

        `tell` is called after each step. Stopped half way, the same call again does the rest.
        """
        return await bulk.delete(self._context, where, dry_run=dry_run, tell=tell)

    async def redrive_matching(
        self, where: Matching, *, dry_run: bool = False, tell: bulk.Tell | None = None
    ) -> bulk.Bulk:
        """Run the failed, dead and cancelled jobs that match again, in steps; counts by error.

        Each once: one that was redriven before is left, as the job that was made of it stands for it for
        as long as that is stored. `tell` is called after each step. Stopped half way, the same call again
        does the rest.
        """
        return await bulk.redrive(self._context, where, dry_run=dry_run, tell=tell)

    async def reencrypt(
        self, *, limit: int | None = None, cursor: str | None = None, seal_plain: bool = False
    ) -> rotation.Reencrypted:
        """Bring what is encrypted under the ring's primary key. Looks at up to `limit` jobs (None: all).

        `cursor` goes on where a call with a limit ended. `seal_plain` encrypts, too, what was stored in the
        clear. Can be stopped and repeated at any time: what is done is passed over.
        """
        return await rotation.reencrypt(
            self._context,
            limit=None if limit is None else validation.check_limit(limit, "limit"),
            cursor=cursor,
            seal_plain=seal_plain,
        )

    async def pause(self, queue: str) -> None:
        """Nobody claims from the queue until it is resumed; what runs goes on."""
        await self.store.pause(
            Pause(validation.check_name(queue, "queue"), self.tenant, self._context.now())
        )

    async def resume(self, queue: str) -> bool:
        """True if it was paused."""
        return await self.store.resume(validation.check_name(queue, "queue"), self.tenant)

    async def pauses(self) -> tuple[Pause, ...]:
        """The queues that are paused, for this tenant or for all."""
        return tuple(
            pause for pause in await self.store.pauses() if self._context.concerns(pause.tenant)
        )

    async def set_limits(self, queue: str, limits: QueueLimits) -> None:
        """The queue has exactly these limits from now on, for all its tenants.

        What is leased goes on, and counts. Workers may take a second to find the queue again.
        """
        await set_limits(self._context, validation.check_name(queue, "queue"), limits)

    async def limits(self, queue: str | None = None) -> Mapping[str, QueueLimits]:
        """The limits of every queue that has some, or of this one, by name."""
        name = None if queue is None else validation.check_name(queue, "queue")
        return await find_limits(self._context, name)

    async def remove_limits(self, queue: str) -> bool:
        """True if the queue had limits."""
        return await remove_limits(self._context, validation.check_name(queue, "queue"))
