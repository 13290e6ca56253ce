"""The background service of the specification's diagram: it keeps a JobManager's jobs going."""

from __future__ import annotations

import asyncio
import inspect
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Self

from headrace import validation
from headrace.contracts.job_store.entity import Id, Job
from headrace.contracts.job_store.manager import JobManager
from headrace.contracts.job_store.records import check_worker
from headrace.contracts.job_store.result import MethodResult
from headrace.errors import InvalidInput

STOP_SECONDS = 30.0
"""How long handlers may take to finish when the service is stopped, unless it says otherwise."""

Handler = Callable[[Job], Awaitable[Any] | Any]
"""What runs a job: a coroutine function, or a plain one that does not take long."""

logger = logging.getLogger("headrace.contracts.job_store")


class BackgroundService:
    """One worker: claims jobs, runs the handler on each, and says how they ended.

    Its pace is the manager's configuration: at most `max_concurrent_jobs` run at once, it looks for more
    every `job_polling_interval_ms` (and whenever one has ended), and every
    `stale_job_claim_check_interval` it recovers the jobs of workers that are gone. What the handler
    returns is the job's result; what it raises is the job's failure, and ends nothing else. Nor does an
    error of the store: it is logged, and the next look may do better.

    `start` and `stop`, or `async with`. A stopped service can be started again.
    """

    def __init__(
        self, manager: JobManager, handler: Handler, *, worker_id: Id | None = None
    ) -> None:
        if not callable(handler):
            raise InvalidInput(f"the handler is {handler!r}, not a function of a job")
        self._manager = manager
        self._handler = handler
        self.worker_id: Id = uuid.uuid4() if worker_id is None else worker_id
        check_worker(self.worker_id)
        self._loops: list[asyncio.Task[None]] = []
        self._running: dict[asyncio.Task[None], Job] = {}
        self._handling: dict[asyncio.Task[None], asyncio.Task[Any]] = {}
        self._stopping = asyncio.Event()
        self._freed = asyncio.Event()

    @property
    def running(self) -> int:
        """How many jobs are in the handler's hands."""
        return len(self._running)

    def start(self) -> None:
        """Begin. Starting twice is fine."""
        if self._loops:
            return
        self._stopping.clear()
        self._freed.clear()
        configuration = self._manager.configuration
        polling = configuration.job_polling_interval_ms / 1000
        stale = configuration.stale_job_claim_check_interval.total_seconds()
        self._loops = [
            asyncio.create_task(self._keep(self._poll, polling), name="job-store-poll"),
            asyncio.create_task(self._keep(self._recover, stale), name="job-store-stale-claims"),
        ]

    async def stop(self, *, seconds: float = STOP_SECONDS) -> None:
        """Claim no more, and let what runs finish; after so long it is cancelled and back in the pool.

        When this returns, nothing of the service runs. Stopping twice is fine.
        """
        validation.check_seconds(seconds, "seconds", zero=True)
        self._stopping.set()
        self._freed.set()
        await asyncio.gather(*self._loops, return_exceptions=True)
        self._loops = []
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)
        for handling in self._handling.values():
            handling.cancel()
        if self._running:
            await asyncio.wait(self._running)

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    # --- looking for work ------------------------------------------------------------------------

    async def _keep(self, look: Callable[[], Awaitable[bool]], seconds: float) -> None:
        """Look and rest until it is time to stop. There is no rest while there may be more."""
        while not self._stopping.is_set():
            try:
                at_once = await look()
            except Exception:
                logger.exception("a look for jobs failed; the next one is in %s s", seconds)
                at_once = False
            if not at_once:
                await self._rest(seconds, until=self._freed if look == self._poll else None)

    async def _rest(self, seconds: float, until: asyncio.Event | None) -> None:
        waiting = [
            asyncio.create_task(event.wait(), name="job-store-rest")
            for event in (self._stopping, until)
            if event is not None
        ]
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def _poll(self) -> bool:
        """Schedule what is due and claim what there is room for; true if there may be more at once."""
        self._freed.clear()
        if self._manager.needs_scheduling:
            self._told("scheduling what is due", await self._manager.process_scheduled_jobs())
        room = self._room()
        if room <= 0:
            return False
        wanted = min(room, self._manager.configuration.max_claim_batch_size)
        claimed = await self._manager.claim_jobs_for_processing(self.worker_id, wanted)
        jobs = self._told("claiming", claimed) or []
        for job in jobs:
            self._take(job)
        return len(jobs) == wanted

    def _room(self) -> int:
        return self._manager.configuration.max_concurrent_jobs - len(self._running)

    async def _recover(self) -> bool:
        self._told("recovering stale claims", await self._manager.process_stale_job_claims())
        return False

    # --- one job ---------------------------------------------------------------------------------

    def _take(self, job: Job) -> None:
        if any(other.id == job.id for other in self._running.values()):
            return  # its claim went stale and was made again, by us: the handler goes on under the new one
        handling = asyncio.create_task(self._handle(job), name=f"job-store-handler-{job.id}")
        task = asyncio.create_task(self._settle(job, handling), name=f"job-store-job-{job.id}")
        self._running[task] = job
        self._handling[task] = handling
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task], self._handling[task]
        self._freed.set()

    async def _handle(self, job: Job) -> Any:
        try:
            result = self._handler(job)
            return await result if inspect.isawaitable(result) else result
        except SystemExit as error:  # it is the job that ends, not the service
            raise RuntimeError(f"the handler called for an exit: {error}") from error

    async def _settle(self, job: Job, handling: asyncio.Task[Any]) -> None:
        """Say how the job ended. Never cancelled itself: what is said is said to the end."""
        await asyncio.wait([handling])
        try:
            if handling.cancelled() and self._stopping.is_set():
                released = await self._manager.store.release_job_to_pool(job.id)
                self._told(f"giving job {job.id} back", released)
            elif handling.cancelled():
                await self._failed(job, "the handler was cancelled")
            elif (error := handling.exception()) is not None:
                await self._failed(job, error)
            else:
                await self._succeeded(job, handling.result())
        except Exception:
            logger.exception("job %s could not be settled; its claim will time out", job.id)

    async def _succeeded(self, job: Job, result: Any) -> None:
        done = await self._manager.process_job_success(job.id, result)
        if done.error is not None and done.error.code in _UNSTORABLE:
            await self._failed(job, done.error.message)
        else:
            self._told(f"completing job {job.id}", done)

    async def _failed(self, job: Job, error: BaseException | str) -> None:
        failed = await self._manager.process_job_failure(job.id, error)
        self._told(f"failing job {job.id}", failed)

    def _told(self, what: str, answer: MethodResult[Any]) -> Any:
        """The data; an error is logged, for there is nobody to answer it to."""
        if answer.error is not None:
            logger.warning("%s failed: %s (%s)", what, answer.error.message, answer.error.code)
        return answer.data


_UNSTORABLE = frozenset({"INVALID_PAYLOAD", "PAYLOAD_TOO_LARGE"})
"""The handler returned what cannot be kept: that is the job's failure, not the store's."""
