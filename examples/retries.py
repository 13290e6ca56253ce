"""What happens when an attempt fails: retry with backoff, fail for good, dead letter, redrive."""

import asyncio

from headrace import Job, JobManager, JobSpec, PermanentError, Policy, TemporaryError, connect
from headrace.retry import Exponential


async def attempt(jobs: JobManager, error: Exception | None = None) -> Job:
    """Claim the next job, waiting until its backoff is over, and end the attempt."""
    claimed: tuple[Job, ...] = ()
    while not claimed:
        claimed = await jobs.claim("worker-1")
        await asyncio.sleep(0.01)
    (job,) = claimed
    if error is None:
        return (await jobs.complete(job.id, job.token)).job
    return (await jobs.fail(job.id, job.token, error)).job


async def main() -> None:
    policy = Policy(max_attempts=3, backoff=Exponential(initial=0.05, jitter=False))
    async with await connect("memory:", policies=policy) as jobs:
        await jobs.submit(JobSpec(type="fetch"))
        for error in (TemporaryError("timeout"), TemporaryError("busy", retry_after=0.02), None):
            job = await attempt(jobs, error)
            wait = f" ({(job.run_at - job.updated_at).total_seconds()} s)" if error else ""
            print(f"fetch, attempt {job.attempt}: {job.state}{wait}")

        await jobs.submit(JobSpec(type="charge"))
        job = await attempt(jobs, PermanentError("card declined", code="declined"))
        print(f"charge, attempt {job.attempt}: {job.state}")

        await jobs.submit(JobSpec(type="import"))
        while not job.is_terminal or job.type != "import":
            job = await attempt(jobs, TemporaryError("bad feed"))
        print(f"import, attempt {job.attempt}: {job.state} ({job.failure and job.failure.message})")

        again = (await jobs.redrive([job.id])).job
        print("redriven:", again.previous_id == job.id, (await attempt(jobs)).state)


asyncio.run(main())
