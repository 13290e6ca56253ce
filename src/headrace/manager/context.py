"""What every part of the manager works with: the store, the clock, the policies and the tenant."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from headrace.clock import Clock, ShiftedClock, StoreClock
from headrace.crypto import KeyRing
from headrace.errors import JobNotFound
from headrace.manager.cache import Cache
from headrace.manager.sealed_store import SealedStore
from headrace.manager.sealing import Sealing
from headrace.model import Job
from headrace.policy import Policies, Policy
from headrace.spec import Template
from headrace.stores.base import JobStore

CLOCK_AGE_SECONDS_MAX = 5.0
"""So late, at most, is it noticed that the store's clock was set."""
CLOCK_READINGS_MAX = 3
ROUND_TRIP_SECONDS_GOOD = 0.1


async def read_clock(store: JobStore) -> tuple[datetime, float]:
    """The store's time now, and how many seconds it took to ask.

    An answer that took long (this process may have been stopped meanwhile) says little about when in
    between the store read its clock: then it is asked again, and the quickest of a few answers counts.
    """
    readings = []
    for _ in range(CLOCK_READINGS_MAX):
        start = time.monotonic()
        store_time = await store.now()
        end = time.monotonic()
        readings.append((end - start, end, store_time))
        if end - start <= ROUND_TRIP_SECONDS_GOOD:
            break
    seconds, end, store_time = min(readings)
    return store_time + timedelta(seconds=time.monotonic() - end), seconds


class Context:
    """Shared by all calls of one manager. `tenant` None sees every tenant: the operator's view."""

    def __init__(
        self,
        store: JobStore,
        clock: Clock,
        policies: Policies,
        tenant: str | None,
        dice: random.Random,
        *,
        keys: KeyRing | None = None,
    ) -> None:
        self.sealing = Sealing(keys, policies)
        self.bare_store = store
        """As it is. Jobs that are read through `store` are open, as far as there are keys."""
        self.store: JobStore = SealedStore(store, self.sealing)
        self.clock = clock
        self.policies = policies
        self.tenant = tenant
        self.dice = dice
        self.cache = Cache()
        self.templates: dict[str, Template] = {}
        """By the type of their jobs: what was checked for the last one that was submitted."""
        self.actor: str | None = None
        """In whose name administrative acts are done, where that was said."""

    def of_tenant(self, tenant: str | None) -> Context:
        """The same for another tenant: for what this tenant, or the operator, has asked for."""
        if tenant == self.tenant:
            return self
        other = copy.copy(self)
        other.tenant = tenant
        other.templates = {}
        return other

    def now(self) -> datetime:
        return self.clock.now()

    async def synchronise(self, *, at_once: bool = False) -> None:
        """Measure the store's clock again if the last measurement has grown old, or in any case."""
        clock = self.store_clock
        if clock is not None and (at_once or clock.age_seconds > CLOCK_AGE_SECONDS_MAX):
            store_time, seconds = await read_clock(self.store)
            clock.measure(store_time, round_trip_seconds=seconds)

    @property
    def store_clock(self) -> StoreClock | None:
        """The clock behind ours that is the store's; None if we go by another."""
        clock = self.clock.base if isinstance(self.clock, ShiftedClock) else self.clock
        return clock if isinstance(clock, StoreClock) else None

    def policy(self, queue: str) -> Policy:
        return self.policies.of(queue)

    def sees(self, job: Job) -> bool:
        return self.tenant is None or job.tenant == self.tenant

    def concerns(self, tenant: str | None) -> bool:
        """Whether what was said for this tenant (None: for all of them) holds for whom we act for."""
        return self.tenant is None or tenant in (None, self.tenant)

    async def read(self, ids: Sequence[str]) -> Mapping[str, Job]:
        """Those that exist and that this manager may see. There is no other way to read by id."""
        found = await self.store.get(ids) if ids else {}
        return {job_id: job for job_id, job in found.items() if self.sees(job)}

    async def read_one(self, job_id: str) -> Job:
        job = (await self.read([job_id])).get(job_id)
        if job is None:
            raise JobNotFound(job_id)
        return job
