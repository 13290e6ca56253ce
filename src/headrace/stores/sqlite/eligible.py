"""Which lanes a claim may take from: those with claimable jobs that the request is for.

Lanes are matched here and not by SQLite, which would make a temporary table of each list it is given;
the keys of lanes are at hand. Only queues are left to the index, for with limit keys one queue may
have thousands of lanes, and whoever does not want them is not to pay for them.
"""

from __future__ import annotations

from collections.abc import Collection

from headrace.stores.base import GATE, ClaimRequest
from headrace.stores.sqlite import queues
from headrace.stores.sqlite.lanes import LaneKey
from headrace.stores.sqlite.session import Snapshot
from headrace.stores.sqlite.sql import json_list, query

_CLOSED = query("claim_closed")
_QUEUES = query("claim_queues")
_LANES = query("claim_lanes")
_LANES_OF_QUEUES = query("claim_lanes_of_queues")

Closed = Collection[tuple[str, str | None]]
"""(queue, tenant) from which nothing is to be taken; without a tenant: of any."""


def paused(view: Snapshot) -> Closed:
    return {(pause.queue, pause.tenant) for pause in queues.pauses(view)}


def paused_or_gated(view: Snapshot) -> Closed:
    return set(view.connection.execute(_CLOSED, (GATE,)).fetchall())


class Eligible:
    """The lanes of one request."""

    def __init__(self, request: ClaimRequest, closed: Closed) -> None:
        self._tenant = request.tenant
        self._queues = None if request.queues is None else frozenset(request.queues)
        self._types = None if request.types is None else frozenset(request.types)
        self._closed = closed

    def admits(self, key: LaneKey) -> bool:
        tenant, queue, type_, _, _ = key
        return (
            (self._tenant is None or tenant == self._tenant)
            and (self._queues is None or queue in self._queues)
            and (self._types is None or type_ in self._types)
            and (queue, None) not in self._closed
            and (queue, tenant) not in self._closed
        )

    def waiting(self, view: Snapshot) -> dict[int, LaneKey]:
        """Those with claimable jobs, due or not."""
        lanes = self._candidates(view)
        view.lanes.learn(lanes)
        return {lane: key for lane in lanes if self.admits(key := view.lanes.key(lane))}

    def _candidates(self, view: Snapshot) -> list[int]:
        shut = {queue for queue, tenant in self._closed if tenant is None}
        if self._queues is None and not shut:
            return view.numbers(_LANES, ())
        wanted = self._queues
        if wanted is None:
            wanted = frozenset(queue for (queue,) in view.connection.execute(_QUEUES).fetchall())
        return view.numbers(_LANES_OF_QUEUES, (json_list(wanted - shut),))
