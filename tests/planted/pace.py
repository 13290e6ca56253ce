"""Rates that fall behind, and jobs that are due and wait."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from headrace import allocation
from headrace.limits import Gate, Rate
from headrace.manager import limits as manager_limits
from headrace.stores.base import ClaimRequest
from headrace.stores.memory import MemoryStore
from tests.planted.defect import Defect, patched

right_next_due = MemoryStore.next_due
right_next_token_at = allocation.next_token_at


def late_ones_begin_anew(self: allocation._Meter, rate: Rate, full_at_ns: int, jobs: int) -> int:
    return max(full_at_ns, self._now_ns) + jobs * rate.interval_ns


def nothing_is_known(*_: object) -> None:
    return None


async def nothing_becomes_due(*_: object) -> None:
    return None


def token_a_second_late(gate: Gate, held: Any, now: datetime) -> datetime | None:
    moment = right_next_token_at(gate, held, now)
    return None if moment is None else moment + timedelta(seconds=1)


async def whatever_the_filters(self: MemoryStore, request: ClaimRequest) -> datetime | None:
    bare = ClaimRequest(worker=request.worker, now=request.now, limit=1, nonce="n")
    return await right_next_due(self, bare)


DEFECTS: dict[str, Defect] = {
    "a late start puts off all those behind it": patched(
        allocation._Meter, "_charged", late_ones_begin_anew
    ),
    "nobody is told of the next token": patched(allocation._Queue, "_next_at", nothing_is_known),
    "a queue without tokens does not tell of the next": patched(
        manager_limits, "next_token_at", nothing_is_known
    ),
    "the next token is told a second late": patched(
        manager_limits, "next_token_at", token_a_second_late
    ),
    "nobody is told when the next job is due": patched(
        MemoryStore, "next_due", nothing_becomes_due
    ),
    "what others are due wakes everybody": patched(MemoryStore, "next_due", whatever_the_filters),
}
