"""Submitting: single jobs, many, batches, and the children of a running job."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

import msgspec

from headrace import lifecycle, validation
from headrace.input_checks import guarded
from headrace.manager import (
    batches,
    deadlines,
    submission,
)
from headrace.manager.placement import Draft
from headrace.manager.verbs.base import Verbs
from headrace.spec import JobSpec
from headrace.stores.base import (
    Fence,
)


@guarded
class Submitting(Verbs):
    """How jobs come in."""

    async def submit(self, spec: JobSpec) -> submission.Submitted:
        """Store one job; with an idempotency key that is held, give the job that holds it."""
        return await submission.submit(self._context, [spec])

    async def submit_many(self, specs: Sequence[JobSpec]) -> submission.Submitted:
        """Store all or none, in order. Jobs of a batch may depend on each other by id."""
        return await submission.submit(self._context, list(specs))

    def draft(self, spec: JobSpec, now: datetime | None = None) -> Draft:
        """The job that submitting this would store, if nothing that is stored stood in its way.

        Raises what submitting would raise before the store is asked.
        """
        moment = self._context.now() if now is None else validation.check_time(now, "now")
        return submission.draft_one(self._context, spec, moment)

    async def spawn(
        self, job_id: str, token: str, specs: Sequence[JobSpec]
    ) -> submission.Submitted:
        """Submit from inside a running job: only while its lease holds, all or none."""
        job = await self._context.read_one(validation.check_id(job_id))
        async with deadlines.enforced(self._context, job_id):
            lifecycle.check_lease(job, token, self._context.now())
            own = [msgspec.structs.replace(one, tenant=one.tenant or job.tenant) for one in specs]
            return await submission.submit(self._context, own, spawner=Fence(job_id, token))

    async def submit_batch(
        self,
        specs: Sequence[JobSpec],
        callback: JobSpec | None = None,
        *,
        batch_id: str | None = None,
    ) -> batches.Batch:
        """Store a set of jobs under one id, and a `callback` that runs once all of them have ended.

        All or none up to 10,000 jobs. More are stored piece by piece, the callback last, and need a
        `batch_id`; with one, repeating the call finds what is stored and adds the rest.
        """
        return await batches.submit_batch(self._context, list(specs), callback, batch_id)

    async def batch(self, batch_id: str) -> batches.BatchProgress:
        """How far the jobs of a batch are, or BatchNotFound."""
        return await batches.progress(self._context, batch_id)

    def watch_batch(
        self, batch_id: str, *, timeout: float | None = None
    ) -> AsyncIterator[batches.BatchProgress]:
        """How far the jobs of a batch are, again and again as that changes, until all have ended.

        After `timeout` seconds it stops, whatever they do.
        """
        if timeout is not None:
            validation.check_seconds(timeout, "timeout", zero=True)
        return batches.watch(self._context, validation.check_id(batch_id), timeout_seconds=timeout)

    async def wait_batch(
        self, batch_id: str, *, timeout: float | None = None
    ) -> batches.BatchProgress:
        """Wait for every job of a batch to end; how they did. TimeoutError: they go on.

        Of a batch that is still being submitted it may see the end of the part that is there.
        """
        last: batches.BatchProgress | None = None
        async for seen in self.watch_batch(batch_id, timeout=timeout):
            last = seen
        assert last is not None, "a batch is seen once at least"
        if last.done:
            return last
        raise TimeoutError(
            f"batch {batch_id} is not done within {timeout} s: {last.ended} of {last.total} jobs have "
            "ended, and the others go on"
        )
