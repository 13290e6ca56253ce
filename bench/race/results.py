"""The figures of a race: kept per entrant and measure, summed up as medians, spreads and ratios."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.race.entrants import Entrant, Measure, Store
from bench.race.measures import Figure


@dataclass
class Results:
    entrants: Sequence[Entrant]
    figures: dict[tuple[str, Measure], list[Figure]] = field(
        default_factory=lambda: defaultdict(list)
    )
    servers: list[str] = field(default_factory=list)
    """What each store ran as."""
    errors: list[str] = field(default_factory=list)

    def add(self, entrant: Entrant, measure: Measure, figure: Figure) -> None:
        self.figures[entrant.key, measure].append(figure)

    def of(
        self,
        entrant: Entrant,
        measure: Measure,
        value: Callable[[Figure], float | None] = lambda figure: figure.value,
    ) -> list[float]:
        found = (value(figure) for figure in self.figures.get((entrant.key, measure), ()))
        return [one for one in found if one is not None]

    def median(self, entrant: Entrant, measure: Measure) -> float | None:
        values = self.of(entrant, measure)
        return statistics.median(values) if values else None

    def on(self, store: Store) -> list[Entrant]:
        return [entrant for entrant in self.entrants if entrant.store is store]

    def ours(self, store: Store) -> Entrant | None:
        return next((one for one in self.on(store) if one.is_ours), None)

    def best_peer(self, store: Store, measure: Measure) -> tuple[Entrant, float] | None:
        """Who is the best of the others, and at what; the raw loops are bounds, not peers."""
        peers = [
            (one, value)
            for one in self.on(store)
            if not (one.is_ours or one.is_raw) and (value := self.median(one, measure)) is not None
        ]
        better = min if measure is Measure.IDLE else max
        return better(peers, key=lambda peer: peer[1]) if peers else None

    def ratio(self, store: Store, measure: Measure) -> tuple[float, Entrant] | None:
        """How many times as much as the best peer: of speeds more is better, of the latency less."""
        ours, peer = self.ours(store), self.best_peer(store, measure)
        own = None if ours is None else self.median(ours, measure)
        return None if own is None or peer is None else (own / peer[1], peer[0])
