"""Queue: the Backend with batches of the lifecycle calls, and streams of assigned jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from headrace import model, validation
from headrace.contracts.backend_api import commands
from headrace.contracts.backend_api.backend import Backend, Tags
from headrace.contracts.backend_api.commands import Decide
from headrace.contracts.backend_api.errors import (
    BackendError,
    InvalidArgumentError,
    translate,
    translated,
    translating,
)
from headrace.contracts.backend_api.streams import JobStream, Subscription, Subscriptions
from headrace.contracts.backend_api.values import Job, job_of
from headrace.errors import HeadraceError
from headrace.input_checks import guarding
from headrace.manager import JobManager, Order
from headrace.manager.leases import CLAIM_LIMIT_MAX
from headrace.model import CLAIMABLE

_V = TypeVar("_V")


class BatchResult(msgspec.Struct, frozen=True):
    """What a batch did: each job stands or is refused alone."""

    freed: dict[str, int]
    """Worker to how many of its jobs the batch freed."""
    errors: dict[str, BackendError]
    """Job id to why it was left as it was; the jobs not named here were changed."""


@guarding(translated)
class Queue(Backend):
    """Every call of the Backend, batches of the lifecycle calls, and `stream_jobs`.

    Capacity that any call through this queue frees goes to the subscription that held the job at once;
    what other processes free or submit arrives with the store's event log.
    """

    def __init__(
        self,
        below: Backend | JobManager,
        *,
        payload_bytes_max: int | None = None,
        result_bytes_max: int | None = None,
    ) -> None:
        if isinstance(below, Backend):
            if payload_bytes_max is None:
                payload_bytes_max = below.payload_bytes_max
            if result_bytes_max is None:
                result_bytes_max = below.result_bytes_max
            below = below.manager
        super().__init__(
            below, payload_bytes_max=payload_bytes_max, result_bytes_max=result_bytes_max
        )
        self._subscriptions = Subscriptions(self.manager)

    @translating
    async def close(self) -> None:
        """End every stream, then close."""
        await self._subscriptions.close()
        await super().close()

    def stream_jobs(self, assignee_id: str, tags: Tags = (), max_assigned: int = 1) -> JobStream:
        """Subscribe a worker: jobs that have all the tags, one at a time, as they are assigned to it.

        At most `max_assigned` jobs of this subscription are assigned at once, those waiting to be handed
        over included; each that is freed makes room for the next.
        """
        with translated():
            worker = validation.check_name(assignee_id, "assignee_id")
            wanted = validation.check_tags(() if tags is None else tags)
            validation.check_limit(max_assigned, "max_assigned", maximum=CLAIM_LIMIT_MAX)

        async def claim(limit: int) -> Sequence[model.Job]:
            return await self._claim(worker, wanted, limit)

        return JobStream(self._subscriptions, Subscription(self.manager, claim, max_assigned))

    # --- batches ---------------------------------------------------------------------------------

    @translating
    async def complete_jobs(self, results: Mapping[str, Any]) -> BatchResult:
        """complete_job for each job id with its result."""
        return await self._change_each(
            results, lambda result: commands.complete(result, self.result_bytes_max)
        )

    @translating
    async def fail_jobs(self, error_msgs: Mapping[str, str]) -> BatchResult:
        """fail_job for each job id with its message."""
        return await self._change_each(error_msgs, commands.fail)

    @translating
    async def stop_jobs(self, error_msgs: Mapping[str, str]) -> BatchResult:
        """stop_job for each job id with its message."""
        return await self._change_each(error_msgs, commands.stop)

    @translating
    async def stop_jobs_with_retry(self, error_msgs: Mapping[str, str]) -> BatchResult:
        """stop_job_with_retry for each job id with its message."""
        return await self._change_each(error_msgs, commands.stop_with_retry)

    @translating
    async def mark_jobs_unknown_stopped(self, error_msgs: Mapping[str, str]) -> BatchResult:
        """mark_job_unknown_stopped for each job id with its message."""
        return await self._change_each(error_msgs, commands.mark_unknown_stopped)

    @translating
    async def acknowledge_cancellations(self, was_executing: Mapping[str, bool]) -> BatchResult:
        """acknowledge_cancellation for each job id with the worker's answer."""
        return await self._change_each(was_executing, commands.acknowledge_cancellation)

    @translating
    async def get_jobs(self, job_ids: Sequence[str]) -> list[Job]:
        """get_job for each id, in order; one that is unknown is an error."""
        if isinstance(job_ids, str | bytes) or not isinstance(job_ids, Iterable):
            raise InvalidArgumentError(f"a list of job ids is needed; {validation.UNCHANGED}")
        ids = [validation.check_id(job_id) for job_id in job_ids]
        return [job_of(job) for job in await self.manager.get_many(ids)]

    # --- inside ----------------------------------------------------------------------------------

    def _observe(self, jobs: Sequence[model.Job]) -> None:
        for job in jobs:
            self._subscriptions.changed(job.id, job.version, job.state)
        if any(job.state in CLAIMABLE for job in jobs):
            self._subscriptions.look()

    async def _change_each(
        self, given: Mapping[str, _V], decision: Callable[[_V], Decide]
    ) -> BatchResult:
        if not isinstance(given, Mapping):
            raise InvalidArgumentError(f"a map by job id is needed; {validation.UNCHANGED}")
        errors: dict[str, BackendError] = {}
        orders: list[Order] = []
        for job_id, value in given.items():
            try:
                orders.append(Order(validation.check_id(job_id), decision(value)))
            except HeadraceError as error:
                errors[job_id] = translate(error)
        settled = await self.manager.change_many(orders)
        changed: list[model.Job] = []
        for order, outcome in zip(orders, settled.outcomes, strict=True):
            if isinstance(outcome, HeadraceError):
                errors[order.job_id] = translate(outcome)
            else:
                changed.append(outcome)
        self._observe(changed)
        return BatchResult(dict(settled.freed), errors)
