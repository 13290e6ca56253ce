"""Recording outcomes in groups: while one group is being written, the next gathers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from headrace.errors import HeadraceError, StoreClosed, StoreUnavailable
from headrace.manager import JobManager, Outcome
from headrace.retry import doubling
from headrace.worker.attempt import Attempt

logger = logging.getLogger("headrace.worker")

_RETRY_SECONDS = (0.05, 2.0)


class Settler:
    """Writes outcomes down. An attempt counts as held until its outcome is recorded, or refused.

    A store that cannot be reached is asked again until it answers: the heartbeats (elsewhere) decide
    whether the lease still holds by then, and the store refuses what came too late.
    """

    def __init__(
        self, manager: JobManager, *, batch: int, on_settled: Callable[[Attempt], None]
    ) -> None:
        self._manager = manager
        self._batch = batch
        self._on_settled = on_settled
        self._waiting: list[tuple[Attempt, Outcome]] = []
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def put(self, attempt: Attempt, outcome: Outcome) -> None:
        self._waiting.append((attempt, outcome))
        self._idle.clear()
        self._wake.set()

    async def flushed(self) -> None:
        """Until everything that was put is recorded."""
        await self._idle.wait()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                group, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
                try:
                    await self._settle(group)
                except StoreClosed:
                    self._waiting = [*group, *self._waiting]
                    raise
            self._idle.set()

    async def _settle(self, group: list[tuple[Attempt, Outcome]]) -> None:
        pauses = doubling(*_RETRY_SECONDS)
        while True:
            try:
                settled = await self._manager.settle([outcome for _, outcome in group])
                break
            except StoreClosed:
                raise
            except StoreUnavailable as error:
                pause = next(pauses)
                logger.warning(
                    "%d outcomes could not be written, trying again in %.2f s: %s",
                    len(group),
                    pause,
                    error,
                )
                await asyncio.sleep(pause)
            except Exception as error:  # noqa: BLE001 - one outcome must not end the worker
                await self._one_by_one(group, error)
                return
        for (attempt, outcome), answer in zip(group, settled.outcomes, strict=True):
            if isinstance(answer, HeadraceError):
                self._refused(attempt, outcome, answer)
            else:
                self._on_settled(attempt)

    async def _one_by_one(self, group: list[tuple[Attempt, Outcome]], error: Exception) -> None:
        """One that the store cannot take must not keep the others from being written."""
        if len(group) == 1:
            ((attempt, outcome),) = group
            if not isinstance(error, HeadraceError):
                logger.error("job %s: an unexpected error", attempt.job.id, exc_info=error)
                await asyncio.sleep(_RETRY_SECONDS[0])
            self._refused(attempt, outcome, error)
            return
        for one in group:
            await self._settle([one])

    def _refused(self, attempt: Attempt, outcome: Outcome, error: Exception) -> None:
        replacement = attempt.after_refusal(outcome, error)
        if replacement is not None:
            self.put(attempt, replacement)
            return
        logger.warning(
            "the outcome of job %s was refused: %s",
            attempt.job.id,
            error,
            extra={
                "job_id": attempt.job.id,
                "attempt": attempt.job.attempt,
                "error_code": getattr(error, "code", None),
            },
        )
        self._on_settled(attempt)
