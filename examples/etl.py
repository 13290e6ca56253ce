"""An ETL of three steps as Airflow users write one: a schedule, results handed on, a retry, a sensor.

extract >> [clean each part] >> load, every morning at six in Berlin.
"""

import asyncio
from datetime import UTC, datetime

from headrace import Context, Cron, Headrace, TemporaryError, Worker, result_of, results_of
from headrace.clock import ManualClock

clock = ManualClock(datetime(2026, 6, 1, 3, 59, tzinfo=UTC))
app = Headrace("memory:", clock=clock)
files: list[str] = []
loaded: list[int] = []


@app.task
async def wait_for_file(ctx: Context, day: str) -> str:
    """What a sensor does: look again in a minute, at no cost to the attempts."""
    if day not in files:
        ctx.snooze("1m")
    return day


@app.task
async def extract(day: str) -> list[int]:
    return [1, 2, 3] if day else []


@app.task(max_attempts=3)
async def clean(ctx: Context, rows: list[int], part: int) -> int:
    if part == 1 and ctx.attempt == 1:
        raise TemporaryError("the converter fell over", retry_after=0)
    return 10 * rows[part]


@app.task
async def load(parts: list[int]) -> int:
    loaded.extend(parts)
    return len(parts)


@app.task
async def run(ctx: Context, day: str) -> None:
    """One run of the DAG: all of it is stored in one step, or nothing."""
    arrived = wait_for_file.options(id=f"{day}-file").spec(day)
    rows = extract.options(id=f"{day}-extract").spec(result_of(arrived))
    parts = [
        clean.options(id=f"{day}-clean-{part}").spec(result_of(rows), part) for part in range(3)
    ]
    await ctx.spawn(arrived, rows, *parts, load.options(id=f"{day}-load").spec(results_of(parts)))


async def main() -> None:
    async with app:
        manager, work = await app.manager(), Worker(app)
        await app.schedule("every morning", Cron("0 6 * * *", "Europe/Berlin"), run.spec("monday"))
        await manager.fire_schedules()
        print("before six:", await work.drain(), "jobs ran")
        clock.advance(61)
        await manager.fire_schedules()
        await work.drain()
        print("the file is not there:", (await app.get("monday-file")).state)
        files.append("monday")
        clock.advance(60)
        await work.drain()
        print("loaded:", loaded)
        print("cleaned part 1 at attempt", (await app.get("monday-clean-1")).attempt)


asyncio.run(main())
