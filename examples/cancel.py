"""Cancelling: jobs that wait are cancelled at once, a job that runs is asked to stop."""

import asyncio

from headrace import JobSpec, connect


async def main() -> None:
    async with await connect("memory:") as jobs:
        tags = {"campaign": "spring"}
        await jobs.submit_many([JobSpec(type="send_email", tags=tags) for _ in range(3)])
        await jobs.submit(JobSpec(id="export", type="export", tags=tags, priority=0))
        (export,) = await jobs.claim("worker-1")

        plan = await jobs.cancel(tags=["campaign=spring"], dry_run=True)
        print("would change:", len(plan.jobs))
        report = await jobs.cancel(tags=["campaign=spring"], reason="the campaign is off")
        print("now:", ", ".join(sorted(job.state for job in report.jobs)))

        # The worker learns of it from its heartbeat, stops its work, and says so.
        assert export.lease is not None
        beat = await jobs.heartbeat([export.lease])
        print("the heartbeat says:", beat.extended["export"].state)
        after = await jobs.acknowledge_cancel("export", export.token, was_executing=True)
        print(f"export: {after.job.state}, freed: {dict(after.freed)}")


asyncio.run(main())
