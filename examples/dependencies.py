"""A job that waits for others: extract, then three transforms, then one load that joins them."""

import asyncio

from headrace import Dependency, DependencyKind, JobSpec, connect


async def main() -> None:
    async with await connect("memory:") as jobs:
        names = [f"transform-{table}" for table in ("users", "orders", "prices")]
        await jobs.submit_many(
            [
                JobSpec(id="load", type="load", after=[_joins(name) for name in names]),
                *(JobSpec(id=name, type="transform", after=["extract"]) for name in names),
                JobSpec(id="extract", type="extract"),
            ]
        )
        print((await jobs.explain("load")).reasons[0].message)

        # The order of submission does not matter: a job is claimable once its parents completed.
        while claimed := await jobs.claim("worker-1", limit=10):
            print("together:", ", ".join(job.id for job in claimed))
            for job in claimed:
                await jobs.complete(job.id, job.token)

        # A parent that fails for good takes those that need it along.
        await jobs.submit(JobSpec(id="copy", type="extract", max_attempts=1))
        await jobs.submit(JobSpec(id="check", type="check", after=["copy"]))
        (copy,) = await jobs.claim("worker-1")
        await jobs.fail(copy.id, copy.token, "the source is gone")
        print("check is", (await jobs.get("check")).state)


def _joins(name: str) -> Dependency:
    """FAN_IN also waits for whatever the other job spawns while it runs."""
    return Dependency(name, DependencyKind.FAN_IN)


asyncio.run(main())
