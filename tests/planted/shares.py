"""Defects of records, gates, claims by shares, held leases, rewrites and log lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from unittest import mock

from msgspec.structs import replace

from headrace.model import Job
from headrace.stores.base import ClaimRequest, Head, Held, Pause, Record, Rewrite, Share
from headrace.stores.columns import LaneKey
from headrace.stores.memory import MemoryStore, claim, commit, lanes, update
from headrace.stores.memory.records import Records
from headrace.stores.memory.tables import Tables
from tests.planted.defect import Defect, patched


def gate_by_prefix(
    self: lanes.Lanes,
    request: ClaimRequest,
    pauses: Sequence[Pause],
    gated: Collection[str],
    lease: Callable[[Job], Job],
) -> list[Job]:
    queues = {key.queue for key, _ in self.items() if key.queue.startswith(tuple(gated))}
    return right_take(self, request, pauses, queues, lease)


right_take = lanes.Lanes.take


async def stale_gates_accepted(
    self: MemoryStore, request: ClaimRequest, shares: Sequence[Share], gates: Sequence[Record]
) -> Sequence[Job] | None:
    present = [self._tables.records.find(gate.kind, [gate.name]) for gate in gates]
    return await right_claim_shares(
        self,
        request,
        shares,
        [replace(g, version=p[0].version) for g, p in zip(gates, present, strict=True) if p],
    )


async def gates_not_written(
    self: MemoryStore, request: ClaimRequest, shares: Sequence[Share], gates: Sequence[Record]
) -> Sequence[Job] | None:
    if not all(self._tables.records.is_current(gate) for gate in gates):
        return None
    return await right_claim_shares(self, request, shares, [])


right_claim_shares = MemoryStore.claim_shares


def share_limit_ignored(
    self: lanes.Lanes,
    request: ClaimRequest,
    pauses: Sequence[Pause],
    shares: Sequence[Share],
    lease: Callable[[Job], Job],
) -> list[Job]:
    every = [replace(share, jobs=request.limit) for share in shares]
    return right_take_shares(self, request, pauses, every, lease)


def request_limit_ignored(
    self: lanes.Lanes,
    request: ClaimRequest,
    pauses: Sequence[Pause],
    shares: Sequence[Share],
    lease: Callable[[Job], Job],
) -> list[Job]:
    return right_take_shares(self, replace(request, limit=10_000), pauses, shares, lease)


def tags_ignored_by_shares(
    self: lanes.Lanes,
    request: ClaimRequest,
    pauses: Sequence[Pause],
    shares: Sequence[Share],
    lease: Callable[[Job], Job],
) -> list[Job]:
    return right_take_shares(self, replace(request, tags=()), pauses, shares, lease)


right_take_shares = lanes.Lanes.take_shares


def heads_of_all_tags(
    self: lanes.Lanes, request: ClaimRequest, pauses: Sequence[Pause]
) -> list[Head]:
    return right_heads(self, replace(request, tags=()), pauses)


right_heads = lanes.Lanes.heads


def lapsed_leases_held(tables: Tables, now: datetime, queues: Sequence[str]) -> list[Held]:
    return right_held(tables, datetime.min.replace(tzinfo=now.tzinfo), queues)


right_held = claim.held


async def leased_jobs_rewritten(self: MemoryStore, rewrites: Sequence[Rewrite]) -> Sequence[bool]:
    with mock.patch.object(Job, "is_leased", False):
        return await right_rewrite(self, rewrites)


right_rewrite = MemoryStore.rewrite


def rewriting_is_a_version(job: Job, rewrite: Rewrite) -> Job:
    return replace(right_rewritten(job, rewrite), version=job.version + 1)


right_rewritten = update.rewritten


def keys_share_a_lane(job: Job) -> LaneKey:
    return right_key(replace(job, limit_key=None))


right_key = lanes._key


def logs_end_with_the_attempt(after: Job, stored: Job) -> Job:
    kept = right_keep_newer(after, stored)
    return kept if after.is_leased else replace(kept, log_json=None)


right_keep_newer = commit.keep_newer

DEFECTS: dict[str, Defect] = {
    "a gate does not stop plain claims": patched(Records, "names", lambda self, kind: ()),
    "a gate stops every queue whose name begins like it": patched(
        lanes.Lanes, "take", gate_by_prefix
    ),
    "a record is replaced whatever its version": patched(
        Records, "is_current", lambda self, read: True
    ),
    "a stale gate is accepted": patched(MemoryStore, "claim_shares", stale_gates_accepted),
    "a claim by shares leaves its gates as they were": patched(
        MemoryStore, "claim_shares", gates_not_written
    ),
    "a lane gives more than its share": patched(lanes.Lanes, "take_shares", share_limit_ignored),
    "shares may exceed the request's limit": patched(
        lanes.Lanes, "take_shares", request_limit_ignored
    ),
    "a claim by shares ignores tags": patched(lanes.Lanes, "take_shares", tags_ignored_by_shares),
    "heads count jobs without the tags": patched(lanes.Lanes, "heads", heads_of_all_tags),
    "a lapsed lease is counted as held": patched(claim, "held", lapsed_leases_held),
    "a leased job is rewritten": patched(MemoryStore, "rewrite", leased_jobs_rewritten),
    "rewriting makes a new version": patched(update, "rewritten", rewriting_is_a_version),
    "a limit key is no part of the lane": patched(lanes, "_key", keys_share_a_lane),
    "log lines end with the attempt": patched(commit, "keep_newer", logs_end_with_the_attempt),
}
