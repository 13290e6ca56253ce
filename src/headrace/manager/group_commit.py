"""Single submissions that come while another is on its way are stored together.

A commit costs a store nearly the same for ten jobs as for one. A submission that finds none on its way goes
at once, as it is; those that come meanwhile wait for it to return, or for two milliseconds, whichever is
sooner, and go in one insertion. Each still stands alone: where the store refuses the group, each is
submitted by itself, so that what is refused touches nobody else (docs/adr/0020).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from headrace.errors import HeadraceError, StoreClosed, StoreUnavailable
from headrace.manager.context import Context
from headrace.manager.placement import Draft
from headrace.manager.submission import Submitted, draft_all, store_drafts
from headrace.spec import JobSpec

WAIT_SECONDS = 0.002
GROUP_JOBS_MAX = 250

_Waiting = tuple[Draft, asyncio.Future[Submitted]]


class GroupCommit:
    """Submits one job at a time for many callers at once, all on one event loop."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._loop: asyncio.AbstractEventLoop | None = None
        self._under_way = 0
        self._waiting: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._groups: set[asyncio.Task[None]] = set()

    async def submit(self, spec: JobSpec) -> Submitted:
        """As `submission.submit` of this one job."""
        await self._context.synchronise()
        (draft,) = draft_all(self._context, [spec])
        loop = asyncio.get_running_loop()
        if not self._under_way:
            self._loop = loop
        elif self._loop is not loop:
            return await store_drafts(
                self._context, [draft]
            )  # another thread's: it waits for nobody here
        elif self._can_wait(draft):
            return await self._with_others(draft, loop)
        self._under_way += 1
        try:
            return await store_drafts(self._context, [draft])
        finally:
            self._under_way -= 1
            self._send()

    def _can_wait(self, draft: Draft) -> bool:
        """Whether nothing of it concerns others: what it waits for, or an id that another one has."""
        return not (draft.dependencies or draft.riders) and all(
            draft.job.id != other.job.id for other, _ in self._waiting
        )

    async def _with_others(self, draft: Draft, loop: asyncio.AbstractEventLoop) -> Submitted:
        answer: asyncio.Future[Submitted] = loop.create_future()
        self._waiting.append((draft, answer))
        if len(self._waiting) >= GROUP_JOBS_MAX:
            self._send()
        elif self._timer is None:
            self._timer = loop.call_later(WAIT_SECONDS, self._send)
        return await answer

    def _send(self) -> None:
        """Let all that wait go. Who was cancelled meanwhile asked for nothing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        group = [waiting for waiting in self._waiting if not waiting[1].done()]
        self._waiting = []
        if group:
            self._under_way += 1
            task = asyncio.ensure_future(self._store(group))
            self._groups.add(task)
            task.add_done_callback(self._groups.discard)

    async def _store(self, group: Sequence[_Waiting]) -> None:
        try:
            await self._store_together(group)
        finally:
            self._under_way -= 1
            self._send()

    async def _store_together(self, group: Sequence[_Waiting]) -> None:
        try:
            submitted = await store_drafts(self._context, [draft for draft, _ in group])
        except asyncio.CancelledError:
            for _, answer in group:
                answer.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - each of them is told
            if len(group) > 1 and _nothing_is_stored(error):
                for one in group:
                    await self._store_together([one])
                return
            for _, answer in group:
                if not answer.done():
                    answer.set_exception(error)
        else:
            jobs = zip(group, submitted.jobs, submitted.created, strict=True)
            for (_, answer), job, created in jobs:
                if not answer.done():
                    answer.set_result(Submitted((job,), (created,)))


def _nothing_is_stored(error: Exception) -> bool:
    """A refusal. What became of an insertion that got no answer is not known: it is not tried again."""
    unknown = isinstance(error, StoreUnavailable | StoreClosed)
    return isinstance(error, HeadraceError) and not unknown
