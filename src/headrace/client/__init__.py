"""The manager's verbs over HTTP: `reach("https://…", token)`. Needs headrace[client]."""

from __future__ import annotations

from headrace.client.manager import RemoteManager
from headrace.client.store import RemoteStore
from headrace.client.transport import Transport
from headrace.clock import Clock, StoreClock
from headrace.policy import Policies

__all__ = ["RemoteManager", "RemoteStore", "Transport", "reach"]


async def reach(
    url: str,
    token: str | None,
    *,
    clock: Clock | None = None,
    policies: Policies | None = None,
    tenant: str | None = None,
) -> RemoteManager:
    """A manager that asks the server at this url, by the server's clock."""
    store = RemoteStore(Transport.to(url, token, tenant))
    try:
        if clock is None:
            clock = StoreClock(await store.now())
    except BaseException:
        await store.close()
        raise
    return RemoteManager(store, clock=clock, policies=policies, tenant=tenant)
