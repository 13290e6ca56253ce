"""The example of the README: submit a job, claim it, complete it, read it back."""

import asyncio

from headrace import JobSpec, connect


async def main() -> None:
    async with await connect("sqlite:///jobs.db") as jobs:
        await jobs.submit(JobSpec(type="greet", payload={"name": "Ada"}))
        for job in await jobs.claim("worker-1", types=["greet"]):
            await jobs.complete(job.id, job.token, result=f"Hello, {job.payload['name']}!")
            print((await jobs.get(job.id)).result)


asyncio.run(main())
