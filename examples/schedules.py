"""Jobs that come by themselves: at a time of day, at an interval, and after ticks were missed."""

import asyncio
from datetime import UTC, datetime

from headrace import Cron, Every, JobManager, JobSpec, Misfire, connect
from headrace.clock import ManualClock


async def fire(jobs: JobManager, what: str) -> None:
    """What every worker does by itself, all the time."""
    fired = await jobs.fire_schedules()
    times = ", ".join(f"{job.type} of {job.run_at:%H:%M}" for job in fired.jobs)
    print(f"{what}: {times or 'nothing'}")


async def main() -> None:
    clock = ManualClock(datetime(2026, 6, 1, 0, 30, tzinfo=UTC))
    async with await connect("memory:", clock=clock) as jobs:
        await jobs.schedule("nightly", Cron("0 3 * * *", "Europe/Berlin"), JobSpec(type="report"))
        await jobs.schedule("poll", Every(900), JobSpec(type="fetch"), misfire=Misfire.SKIP)
        await fire(jobs, "at once")
        clock.set(datetime(2026, 6, 1, 1, 0, 1, tzinfo=UTC))
        await fire(jobs, "03:00 in Berlin")
        await fire(jobs, "another worker")

        clock.set(datetime(2026, 6, 2, 9, 5, tzinfo=UTC))  # the workers were down for a day
        await fire(jobs, "a day later")

        await jobs.pause_schedule("nightly")
        for schedule in await jobs.schedules():
            print(schedule.name, "is paused" if schedule.paused else "goes on")


asyncio.run(main())
