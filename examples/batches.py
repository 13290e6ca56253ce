"""A batch with one callback when all of it has ended, and hooks on a single job."""

import asyncio

from headrace import JobManager, JobSpec, PermanentError, connect


async def main() -> None:
    async with await connect("memory:") as jobs:
        rows = [JobSpec(type="import_row", payload={"row": n}) for n in range(5)]
        done = JobSpec(type="report", payload={"to": "ada@example.org"})
        batch = await jobs.submit_batch(rows, done, batch_id="import-42")
        print("stored:", len(batch.job_ids), "jobs and a callback")

        for row in await jobs.claim("worker-1", limit=3):
            await jobs.complete(row.id, row.token)
        progress = await jobs.batch("import-42")
        print(f"{progress.fraction:.0%}: {progress.completed} completed, {progress.waiting} wait")

        # However the others end, the callback comes after them, once, with the numbers.
        for row in await jobs.claim("worker-1", limit=2):
            await jobs.fail(row.id, row.token, PermanentError("bad row"))
        await work(jobs)

        page = [JobSpec(type="page_someone", payload={"team": "ops"})]
        thanks = [JobSpec(type="say_thanks")]
        for name in ("good", "bad"):
            await jobs.submit(JobSpec(id=name, type="order", on_success=thanks, on_failure=page))
        for order in await jobs.claim("worker-1", types=["order"], limit=2):
            if order.id == "good":
                await jobs.complete(order.id, order.token, {"total": 12})
            else:
                await jobs.fail(order.id, order.token, PermanentError("no such card"))
        await work(jobs)


async def work(jobs: JobManager) -> None:
    """What a worker does with jobs that follow others."""
    while claimed := await jobs.claim("worker-1", limit=10):
        for job in claimed:
            hook_call = await jobs.hook_call(job)
            assert hook_call is not None
            if not hook_call.wanted:
                print(f"{job.type}: {hook_call.note}")
                await jobs.complete(job.id, job.token, hook_call.note)
                continue
            payload = hook_call.payload(job.payload)
            about = payload.get("batch") or payload["job"]
            print(f"{job.type} runs:", *(f"{name}={about[name]}" for name in about if about[name]))
            await jobs.complete(job.id, job.token)


asyncio.run(main())
