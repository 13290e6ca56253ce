"""Dependencies in memory: edges both ways, and per child the counts that make a join O(1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from headrace.graph import PROPAGATED, Join
from headrace.model import DependencyKind, Edge, State


class Edges:
    def __init__(self) -> None:
        self._from: dict[str, dict[str, Edge]] = {}
        self._into: dict[str, dict[str, Edge]] = {}
        self._outcomes: dict[str, Counter[tuple[bool, State | None]]] = {}
        self._unseen: dict[tuple[str, str], None] = {}

    def add(self, edges: Iterable[Edge]) -> None:
        for edge in edges:
            twin = self._from.get(edge.parent_id, {}).get(edge.child_id)
            if twin is not None:
                self._outcomes[edge.child_id][_slot(twin)] -= 1
            self._write(edge)
            self._outcomes.setdefault(edge.child_id, Counter())[_slot(edge)] += 1

    def settle(self, parent_id: str, outcome: State) -> list[Edge]:
        """Give every open edge from the parent its outcome; the edges so changed."""
        settled = []
        for edge in list(self._from.get(parent_id, {}).values()):
            if edge.outcome is None:
                ended = replace(edge, outcome=outcome)
                counts = self._outcomes[edge.child_id]
                counts[_slot(edge)] -= 1
                counts[_slot(ended)] += 1
                self._write(ended)
                settled.append(ended)
        return settled

    def see(self, pairs: Iterable[tuple[str, str]]) -> None:
        for parent_id, child_id in pairs:
            edge = self._from.get(parent_id, {}).get(child_id)
            if edge is not None and edge.outcome is not None:
                self._write(replace(edge, seen=True))

    def forget_child(self, child_id: str) -> None:
        for parent_id in self._into.pop(child_id, {}):
            self._from[parent_id].pop(child_id)
            self._unseen.pop((parent_id, child_id), None)
            if not self._from[parent_id]:
                del self._from[parent_id]
        self._outcomes.pop(child_id, None)

    def between(self, parent_id: str | None, child_id: str | None) -> list[Edge]:
        """From the parent into the child; all that one of them has if the other is not given."""
        if parent_id is not None:
            edges = self._from.get(parent_id, {}).values()
            return [edge for edge in edges if child_id in (None, edge.child_id)]
        return [] if child_id is None else list(self._into.get(child_id, {}).values())

    def count_into(self, child_id: str) -> int:
        return len(self._into.get(child_id, {}))

    def joins_of(self, parent_id: str) -> list[str]:
        """Who waits for the parent by FAN_IN."""
        found = self._from.get(parent_id, {}).values()
        return [edge.child_id for edge in found if edge.kind is DependencyKind.FAN_IN]

    def join(self, child_id: str) -> Join:
        counts = self._outcomes.get(child_id, Counter())
        return Join(
            needs_open=counts[True, None] > 0,
            needs_broken=next((state for state in PROPAGATED if counts[True, state] > 0), None),
            any_open=counts[False, None] > 0,
            any_ended=any(counts[False, state] > 0 for state in State),
        )

    def unseen(self, limit: int) -> list[Edge]:
        pairs = list(self._unseen)[:limit]
        return [self._from[parent_id][child_id] for parent_id, child_id in pairs]

    def _write(self, edge: Edge) -> None:
        self._from.setdefault(edge.parent_id, {})[edge.child_id] = edge
        self._into.setdefault(edge.child_id, {})[edge.parent_id] = edge
        if edge.outcome is not None and not edge.seen:
            self._unseen[edge.parent_id, edge.child_id] = None
        else:
            self._unseen.pop((edge.parent_id, edge.child_id), None)


def _slot(edge: Edge) -> tuple[bool, State | None]:
    """(must the parent complete?, its outcome)."""
    return edge.kind is not DependencyKind.AFTER_ANY, edge.outcome
