"""Schedules: jobs that submit themselves."""

from __future__ import annotations

import msgspec

from headrace import validation
from headrace.input_checks import guarded
from headrace.manager import (
    schedules,
)
from headrace.manager.schedules import Fired
from headrace.manager.verbs.base import MAINTENANCE_LIMIT, Verbs
from headrace.model import (
    DEFAULT_TENANT,
)
from headrace.schedules import (
    GRACE_SECONDS_DEFAULT,
    Misfire,
    Schedule,
    When,
    declare,
    resumed,
)
from headrace.spec import JobSpec


@guarded
class Scheduling(Verbs):
    """When jobs are to be submitted, over and over."""

    async def schedule(
        self,
        name: str,
        when: When,
        job: JobSpec,
        *,
        misfire: Misfire = Misfire.ONCE,
        grace_seconds: float = GRACE_SECONDS_DEFAULT,
        replace: bool = False,
    ) -> Schedule:
        """Submit `job` at every tick from now on; the schedule as it is stored.

        Names are unique within a tenant. The same schedule again changes nothing; another one under the
        name is refused with DuplicateSchedule or, with `replace`, put in its place.
        """
        wanted = declare(
            name,
            when,
            job,
            tenant=self.tenant or DEFAULT_TENANT,
            now=self._context.now(),
            misfire=misfire,
            grace_seconds=grace_seconds,
        )
        return await schedules.add(self._context, wanted, replace=replace)

    async def schedules(self) -> tuple[Schedule, ...]:
        """All there are, in order of tenant and name."""
        return await schedules.find_all(self._context)

    async def pause_schedule(self, name: str) -> Schedule:
        """Fire no tick until it is resumed. A manager that is bound to no tenant means the default one's."""
        name = validation.check_name(name, "name of the schedule")
        return await schedules.change(
            self._context, name, lambda one: msgspec.structs.replace(one, paused=True)
        )

    async def resume_schedule(self, name: str) -> Schedule:
        """Go on. What was missed is passed over if its rule is to skip, and else made up for by its rule."""
        name = validation.check_name(name, "name of the schedule")
        return await schedules.change(
            self._context, name, lambda one: resumed(one, self._context.now())
        )

    async def unschedule(self, name: str) -> bool:
        """True if there was one. The jobs it has submitted stay."""
        return await schedules.remove(
            self._context, validation.check_name(name, "name of the schedule")
        )

    async def fire_schedules(self, limit: int = MAINTENANCE_LIMIT) -> Fired:
        """One round: submit a job for each tick that is due. Any number of hosts make one job of a tick."""
        return await schedules.fire(self._context, validation.check_limit(limit, "limit"))
