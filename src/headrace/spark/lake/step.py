"""What a run tells while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is being done now, and how far that is."""

    doing: str
    done: int | None = None
    """So many so far."""
    total: int | None = None
    """Of so many. None: nobody knows."""
    place: float | None = None
    """How far that is where the total is not known: 0 to 1."""

    @property
    def fraction(self) -> float | None:
        """How far it is, 0 to 1. None: nobody knows."""
        if self.done is None or self.total is None:
            return self.place
        return self.done / self.total if self.total else 1.0


Tell = Callable[[Step], None]
"""Called from whichever thread does the work."""
