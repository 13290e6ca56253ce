"""The buckets in which waits and runs are counted, the same in a store and in a lake. Pure."""

from __future__ import annotations

from bisect import bisect_left

import msgspec

BUCKET_SECONDS = tuple(factor * 10.0**power for power in range(-3, 4) for factor in (1, 2, 5))
"""Upper bounds of the buckets, 1 ms to 5000 s in steps of 1, 2, 5. One more bucket holds what is longer.

Percentiles of several hours cannot be added up; the counts in buckets can."""
BUCKET_US = tuple(round(one * 1_000_000) for one in BUCKET_SECONDS)
_US = 1e-6


class Histogram(msgspec.Struct, array_like=True):
    """How long some attempts waited or ran."""

    buckets: dict[int, int] = msgspec.field(default_factory=dict)
    """How many lie in each bucket; none that are zero."""
    total_us: int = 0

    def add(self, span_us: int) -> None:
        bucket = bisect_left(BUCKET_US, span_us)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1
        self.total_us += span_us

    def merge(self, other: Histogram) -> None:
        for bucket, count in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + count
        self.total_us += other.total_us

    @property
    def count(self) -> int:
        return sum(self.buckets.values())

    @property
    def mean_seconds(self) -> float | None:
        count = self.count
        return self.total_us * _US / count if count else None

    def quantile(self, fraction: float) -> float | None:
        """Seconds that so large a part did not exceed, about: straight from one bound to the next.

        What lies above the last bound counts as that.
        """
        wanted = fraction * self.count
        below = 0
        for bucket, count in sorted(self.buckets.items()):
            if below + count >= wanted:
                if bucket == len(BUCKET_SECONDS):
                    return BUCKET_SECONDS[-1]
                low = BUCKET_SECONDS[bucket - 1] if bucket else 0.0
                return low + (BUCKET_SECONDS[bucket] - low) * max(wanted - below, 0.0) / count
            below += count
        return None
