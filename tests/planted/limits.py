"""Limits, turns and admission done wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from headrace import allocation
from headrace.allocation import Holding
from headrace.limits import Gate, QueueLimits
from headrace.manager import admission, cache
from headrace.manager import limits as manager_limits
from headrace.manager.context import Context
from headrace.manager.limits import Claimed
from headrace.model import Job
from headrace.stores.base import ClaimRequest, Record, Share
from headrace.stores.memory import MemoryStore
from tests.planted.defect import Defect, patched

right_claim_shares = MemoryStore.claim_shares
right_claim = manager_limits.claim
right_charge = allocation._Meter.charge
right_occupy = allocation._Meter._occupy
right_ahead = allocation._ahead
right_under = Gate.under
right_admit = admission.insert


async def gates_not_compared(
    self: MemoryStore, request: ClaimRequest, shares: Sequence[Share], gates: Sequence[Record]
) -> Sequence[Job] | None:
    present = {record.name: record.version for record in await self.records("gate")}
    moved = [replace(gate, version=present.get(gate.name, gate.version)) for gate in gates]
    return await right_claim_shares(self, request, shares, moved)


async def gives_up_at_once(context: Context, request: ClaimRequest) -> Claimed:
    return await manager_limits._try_to_claim(context, request) or Claimed(())


async def keeps_what_is_unused(*_: object) -> None:
    return None


async def always_limited_first(
    context: Context, request: ClaimRequest, *, limited_first: bool
) -> Claimed:
    return await right_claim(context, request, limited_first=True)


def nothing_is_held(
    self: allocation._Meter, gate: Gate, held: Iterable[Holding], now: datetime
) -> None:
    right_meter(self, gate, (), now)


right_meter = allocation._Meter.__init__


def keys_shared_by_tenants(
    self: allocation._Meter, tenant: str, key: str | None, jobs: int
) -> None:
    for each in ("a", "b") if tenant in ("a", "b") else (tenant,):
        right_occupy(self, each, key, jobs)


def no_tokens_taken(self: allocation._Meter, tenant: str, key: str | None, jobs: int) -> None:
    return None


def leads_forgotten(leads: Mapping[str, float], present: float) -> Mapping[str, float]:
    return {}


def leads_never_caught_up(leads: Mapping[str, float], present: float) -> Mapping[str, float]:
    return right_ahead(leads, 0.0)


def without_what_is_on_the_way(self: cache.BacklogEstimate) -> cache.Size:
    return self._measured.plus(self._added).minus(self._measured_from)


async def admits_all(context: Context, insertion: Any) -> Any:
    return await context.store.insert(insertion)


async def refuses_repeats(context: Context, insertion: Any) -> Any:
    places = await admission._places(context, insertion.jobs)
    full = await admission._full(context, places)
    if full is not None:
        raise admission._queue_full(full)
    return await right_admit(context, insertion)


def admission_by_gate(self: QueueLimits) -> QueueLimits:
    return self


def _always(value: object) -> Callable[..., object]:
    return lambda *_, **__: value


DEFECTS: dict[str, Defect] = {
    "two claims may use the same gate": patched(MemoryStore, "claim_shares", gates_not_compared),
    "a claim that meets another comes back empty": patched(
        manager_limits, "_claim_limited", gives_up_at_once
    ),
    "tokens of jobs that were gone stay taken": patched(
        manager_limits, "_return_unused", keeps_what_is_unused
    ),
    "limited queues go first, always": patched(manager_limits, "claim", always_limited_first),
    "what is leased does not count": patched(allocation._Meter, "__init__", nothing_is_held),
    "keys are shared between tenants": patched(
        allocation._Meter, "_occupy", keys_shared_by_tenants
    ),
    "tokens are not taken": patched(allocation._Meter, "charge", no_tokens_taken),
    "turns are forgotten": patched(allocation, "_ahead", leads_forgotten),
    "who was served before others came pays for it": patched(
        allocation, "_ahead", leads_never_caught_up
    ),
    "weights do not count": patched(QueueLimits, "weight", _always(1.0)),
    "every queue is full for nobody": patched(admission, "insert", admits_all),
    "a repeat is refused when the queue is full": patched(admission, "insert", refuses_repeats),
    "what is being stored does not count": patched(
        cache.BacklogEstimate, "load", property(without_what_is_on_the_way)
    ),
    "the backlog is never measured again": patched(cache, "is_fresh", _always(value=True)),
    "a limit for submissions gates the claims": patched(
        QueueLimits, "for_claims", property(admission_by_gate)
    ),
    "the slot of a lapsed lease is given on at once": patched(manager_limits, "GRACE_SECONDS", 0.0),
    "a changed limit keeps the old one": patched(Gate, "under", lambda self, limits: self),
}
