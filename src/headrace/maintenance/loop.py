"""The loop around the steps: each at its own pace, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from headrace.errors import HeadraceError, StoreClosed, StoreUnavailable
from headrace.manager import JobManager
from headrace.manager.upkeep import Done, Step, steps_under
from headrace.retry import Exponential

FAILED_REST = Exponential(initial=1.0, cap=60.0)

logger = logging.getLogger("headrace.maintenance")


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one step."""

    step: str
    count: int = 0
    """How many jobs it changed, deleted or submitted, or how many events."""
    seconds: float
    error: Exception | None = None
    """Why it failed; it will be tried again."""


async def rest(stop: asyncio.Event, seconds: float) -> None:
    """Wait so long, or until it is time to stop."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


class Maintenance:
    """Upkeep of a store, for every worker to run: there is no leader, and together they do it once.

    A step that fails is logged and tried again, less and less often; it disturbs no other step. A store
    that cannot be reached is logged once, and once more when it answers again.
    """

    def __init__(
        self,
        manager: JobManager,
        steps: Sequence[Step] | None = None,
        *,
        on_round: Callable[[Round], None] | None = None,
        dice: random.Random | None = None,
        rest: Callable[[asyncio.Event, float], Awaitable[None]] = rest,
    ) -> None:
        self._manager = manager
        self._steps = steps_under(manager.policies) if steps is None else tuple(steps)
        self._on_round = on_round
        self._dice = dice or random.Random()  # noqa: S311 - spread, not secrets
        self._rest = rest
        self._unreachable = False
        self._troubles: dict[str, frozenset[str]] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; a run that is under way is finished first. May be cancelled at any time."""
        async with asyncio.TaskGroup() as group:
            for step in self._steps:
                group.create_task(self._keep(step, stop), name=f"headrace-{step.name}")

    async def once(self) -> tuple[Round, ...]:
        """Every step once, in order. An error ends it; what was done before stays done."""
        return tuple([(await self._timed(step))[0] for step in self._steps])

    async def _keep(self, step: Step, stop: asyncio.Event) -> None:
        failures = 0
        await self._rest(stop, self._dice.uniform(0.0, step.spread_seconds))
        while not stop.is_set():
            start = time.perf_counter()
            try:
                round_, seconds = await self._timed(step)
                failures = 0
                self._recovered(step)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next run may do better
                failures += 1
                seconds = FAILED_REST.delay(failures, self._dice.random())
                round_ = Round(step=step.name, seconds=time.perf_counter() - start, error=error)
                self._failed(step, error, failures, seconds)
            self._report(round_)
            await self._rest(stop, seconds)

    async def _timed(self, step: Step) -> tuple[Round, float]:
        """One run, and how long to rest after it."""
        start = time.perf_counter()
        done = await step.run(self._manager)
        self._tell(step, done)
        wait = step.interval_seconds if done.rest_seconds is None else done.rest_seconds
        if wait > 0:
            wait += self._dice.uniform(0.0, step.spread_seconds)
        return Round(step=step.name, count=done.count, seconds=time.perf_counter() - start), wait

    def _tell(self, step: Step, done: Done) -> None:
        for trouble in sorted(done.troubles - self._troubles.get(step.name, frozenset())):
            logger.warning("%s", trouble, extra={"step": step.name})
        self._troubles[step.name] = done.troubles

    def _failed(self, step: Step, error: Exception, failures: int, seconds: float) -> None:
        extra = {
            "step": step.name,
            "failures": failures,
            "rest_seconds": seconds,
            "code": error.code if isinstance(error, HeadraceError) else type(error).__name__,
        }
        if isinstance(error, StoreUnavailable | StoreClosed):
            level = logging.DEBUG if self._unreachable else logging.WARNING
            self._unreachable = True
            logger.log(level, "maintenance waits for the store: %s", error, extra=extra)
            return
        logger.log(
            logging.WARNING if isinstance(error, HeadraceError) else logging.ERROR,
            "the step %s failed and is tried again in %.1f s: %s",
            step.name,
            seconds,
            error,
            extra=extra,
            exc_info=None if isinstance(error, HeadraceError) else error,
        )

    def _recovered(self, step: Step) -> None:
        if self._unreachable:
            self._unreachable = False
            logger.info("the store answers again", extra={"step": step.name})

    def _report(self, round_: Round) -> None:
        if self._on_round is None:
            return
        try:
            self._on_round(round_)
        except Exception:
            logger.exception("on_round failed; maintenance goes on", extra={"step": round_.step})
