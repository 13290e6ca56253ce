"""The manager's suite of the conformance kit, through the HTTP client, on every store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from headrace.client import RemoteManager, RemoteStore, Transport
from headrace.connect import connect
from headrace.crypto import KeyRing
from headrace.errors import NotOverHttp
from headrace.manager import Changed, Claimed, JobManager
from headrace.model import Job
from headrace.policy import Policies, Policy
from headrace.server import Bounds, create_app
from headrace.stores.base import JobStore
from headrace.testing.conformance import Case, suites
from headrace.testing.conformance.kit import Env
from headrace.tokens import Scope
from tests import conftest

(SUITE,) = (suite for suite in suites() if suite.name == "manager")


OWN_TOKEN = "it counts the tokens, and this way there is one more: the client's own"
BOUNDS = Bounds(
    body_bytes_max=1 << 30, page_jobs_max=10_000, batch_jobs_max=100_000, body_seconds_max=300
)
"""Those of the manager itself: the kit looks for them."""


class KitStore(RemoteStore):
    """The kit compares whole jobs. Over HTTP nobody but its holder is told a token, so the holder adds it."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.tokens: dict[tuple[str, int], str | None] = {}

    async def get(self, ids: Sequence[str]) -> Mapping[str, Job]:
        return {job_id: self.held(job) for job_id, job in (await super().get(ids)).items()}

    def held(self, job: Job) -> Job:
        token = self.tokens.get((job.id, job.attempt)) if job.is_leased else None
        return replace(job, token=job.token or token)


class KitManager(RemoteManager):
    """Cases look into the store beside the manager: there they find the server's own."""

    looked_into: JobStore

    @property
    def store(self) -> JobStore:
        return self.looked_into

    async def claim_ahead(self, *args: Any, **kwargs: Any) -> Claimed:
        claimed = await super().claim_ahead(*args, **kwargs)
        store = self._context.bare_store
        assert isinstance(store, KitStore)
        store.tokens |= {(job.id, job.attempt): job.token for job in claimed.jobs}
        return claimed

    async def update(self, *args: Any, **kwargs: Any) -> Changed:
        changed = await super().update(*args, **kwargs)
        store = self._context.bare_store
        assert isinstance(store, KitStore)
        return replace(changed, jobs=tuple(store.held(job) for job in changed.jobs))


class OverHttp(Env):
    """Each manager of a case is a client of a server of its own, on the case's store and clock."""

    async def manager(
        self,
        policies: Policies | Policy | None = None,
        *,
        tenant: str | None = None,
        keys: KeyRing | None = None,
    ) -> JobManager:
        served = await connect(self.url, policies=policies, clock=self.clock, keys=keys)
        self.closing(served)
        application = create_app(served, bounds=BOUNDS)
        self.closing(application.service)
        secret = (await served.create_token("kit", list(Scope), tenant=tenant)).secret
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(application),
            base_url="http://localhost",
            headers={"Authorization": f"Bearer {secret}"},
        )
        store = KitStore(Transport(client, "localhost", tenant))
        manager = KitManager(store, clock=self.clock, policies=served.policies, tenant=tenant)
        manager.looked_into = served.store
        return self.closing(manager)


NOT_THIS_WAY: Mapping[str, str] = {
    "encryption: what was tampered with is an error to read, and can be listed, cancelled and deleted": (
        "contents that cannot be read are told in words"
    ),
    "attempts: each claim is told once: who, how long, how it ended, and what was said late": (
        "a queue without fencing: over HTTP every worker shows its lease token"
    ),
    "updates: tags that tie a job to others are neither taken nor given": (
        "a queue without fencing: over HTTP every worker shows its lease token"
    ),
    "fail: a message that no store could keep is recorded in words that all can": (
        "text that is no text is refused where it would be sent"
    ),
    "tokens: a token is found by its secret, and the store holds only a hash of that": OWN_TOKEN,
    "tokens: a revoked token is dead for whoever asks next, and stays listed": OWN_TOKEN,
    "tokens: what cannot be is refused, and nothing is stored": OWN_TOKEN,
    "tokens: when a token was last used is known to the hour, and written no more often": OWN_TOKEN,
}
"""Cases that do not concern a manager over HTTP, and why."""
NO_ROUTES = frozenset({"commit", "edges", "find", "heads", "keyed", "records", "workers"})
"""What the cases need that are for whoever reaches the store itself: bulk commands, readers, trimming."""


@pytest.mark.long
@pytest.mark.parametrize("store_url", conftest.STORES, indirect=True)
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in SUITE.cases])
async def test_case(case: Case, store_url: str) -> None:
    why = NOT_THIS_WAY.get(case.name.removeprefix("manager: "))
    if why is not None:
        pytest.skip(why)
    env = OverHttp(store_url)
    try:
        await case.function(env)
    except NotOverHttp as error:
        if error.verb not in NO_ROUTES:
            raise
        pytest.skip(f"not over HTTP: {error.verb}")
    finally:
        await env.close()
