"""What keeps a store healthy, one round at a time."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from headrace import validation
from headrace.errors import InvalidInput, NoReaders
from headrace.input_checks import guarded
from headrace.manager import (
    clock_recovery,
    recovery,
    retention,
)
from headrace.manager.changes import Changed
from headrace.manager.schedules import Fired
from headrace.manager.verbs.base import MAINTENANCE_LIMIT
from headrace.manager.verbs.scheduling import Scheduling
from headrace.manager.verbs.trimming import Trimming
from headrace.model import (
    TERMINAL,
    State,
)


class Maintained(msgspec.Struct, frozen=True, kw_only=True):
    """What one round of maintenance did."""

    reaped: Changed
    outlived: Changed
    swept: int
    fired: Fired
    restamped: int
    """Jobs whose times had been stamped by a clock that was set back since."""
    deleted: Mapping[State, int]
    trimmed: int
    """Events of the log: none unless the policies say for how long they are kept."""


@guarded
class Upkeep(Scheduling, Trimming):
    """Leases, lifetimes, dependencies, schedules and retention. Safe from many hosts at once."""

    _clock_recovery: clock_recovery.ClockRecovery

    async def reap(self, limit: int = MAINTENANCE_LIMIT) -> Changed:
        """Take back leases that have lapsed."""
        return await recovery.reap(self._context, validation.check_limit(limit, "limit"))

    async def end_lifetimes(self, limit: int = MAINTENANCE_LIMIT) -> Changed:
        """Jobs past their lifetime are dead."""
        return await recovery.end_lifetimes(self._context, validation.check_limit(limit, "limit"))

    async def sweep(self, limit: int = MAINTENANCE_LIMIT) -> int:
        """Finish releases that a crash left half done; how many jobs changed."""
        return await recovery.sweep(self._context, validation.check_limit(limit, "limit"))

    async def restamp(self) -> int:
        """After the store's clock was set back: bring back what it stamped ahead; how many jobs.

        Due times, next tries and leases. What a caller asked for stays.
        """
        return await self._clock_recovery.run()

    async def maintain(self) -> Maintained:
        """One round of everything that keeps the store healthy. Safe from many hosts at once."""
        return Maintained(
            restamped=await self.restamp(),
            reaped=await self.reap(),
            outlived=await self.end_lifetimes(),
            swept=await self.sweep(),
            fired=await self.fire_schedules(),
            deleted=await self.cleanup(limit=MAINTENANCE_LIMIT),
            trimmed=await self._trim(),
        )

    async def _trim(self) -> int:
        try:
            return (await self.trim_events(limit=MAINTENANCE_LIMIT)).events
        except NoReaders:
            return 0

    async def cleanup(
        self,
        keep_seconds: Mapping[State, float | None] | None = None,
        *,
        limit: int = MAINTENANCE_LIMIT,
    ) -> Mapping[State, int]:
        """Delete ended jobs that are older than their state's keep time (default: the policies')."""
        validation.check_limit(limit, "limit")
        keep = None
        if keep_seconds is not None:
            keep = {
                _ended(state): None
                if seconds is None
                else validation.check_seconds(seconds, "keep_seconds", zero=True)
                for state, seconds in keep_seconds.items()
            }
        return await retention.cleanup(self._context, keep=keep, limit=limit)


def _ended(state: State) -> State:
    word = validation.check_word(state, State)
    if word not in TERMINAL:
        raise InvalidInput(f"jobs that are {word} have not ended; nothing was deleted")
    return word
