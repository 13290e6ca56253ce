"""The event log: everything that happens to a job, in order, readable from any cursor, and live."""

import asyncio

from headrace import JobSpec, connect


async def main() -> None:
    async with await connect("memory:") as jobs:
        await jobs.submit(JobSpec(id="a", type="demo"))
        (job,) = await jobs.claim("worker-1")
        seen = await jobs.events()
        print("so far:", ", ".join(f"{event.job_id} {event.kind}" for event in seen))

        # A reader that resumes from its cursor misses nothing and sees nothing twice.
        await jobs.complete(job.id, job.token, result=42)
        for event in await jobs.events(after=seen[-1].cursor):
            print(
                f"new: {event.job_id} {event.before} -> {event.after},", event.result_bytes, "bytes"
            )

        # Live: follow waits for what is yet to come.
        async def submit_later() -> None:
            await asyncio.sleep(0.05)
            await jobs.submit_many([JobSpec(id="b", type="demo"), JobSpec(id="c", type="demo")])

        later = asyncio.create_task(submit_later())
        async for event in jobs.follow(after=await jobs.tail(), idle_seconds=0.5):
            print("live:", event.job_id, event.kind)
        await later


asyncio.run(main())
