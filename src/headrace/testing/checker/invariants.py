"""The list of invariants, by number and name, and the one call that holds a history against them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import msgspec

from headrace.testing.checker.dependencies import dependencies_kept
from headrace.testing.checker.histories import Breach, History
from headrace.testing.checker.lawfulness import lawful, within_budget
from headrace.testing.checker.leases import fenced, single_holder
from headrace.testing.checker.liveness import drained
from headrace.testing.checker.stream import gap_free
from headrace.testing.checker.submissions import idempotent, no_invention, no_loss


class Invariant(msgspec.Struct, frozen=True):
    """A promise, and what finds the breaches of it in a history."""

    number: int
    name: str
    breaches: Callable[[History], Iterator[Breach]]


class Violation(msgspec.Struct, frozen=True):
    """A promise that was broken, and where."""

    invariant: Invariant
    breach: Breach

    def __str__(self) -> str:
        where = "" if self.breach.job_id is None else f"job {self.breach.job_id}: "
        return f"{self.invariant.number} {self.invariant.name}: {where}{self.breach.what}"


INVARIANTS = (
    Invariant(1, "no loss", no_loss),
    Invariant(2, "no invention", no_invention),
    Invariant(3, "fenced", fenced),
    Invariant(4, "single holder", single_holder),
    Invariant(5, "lawful", lawful),
    Invariant(6, "budget", within_budget),
    Invariant(7, "idempotency", idempotent),
    Invariant(8, "dependencies", dependencies_kept),
    Invariant(9, "stream", gap_free),
    Invariant(12, "liveness", drained),
)


def check(history: History, *, without: Collection[int] = ()) -> list[Violation]:
    """Every breach of every invariant but those left out, in order of the invariants."""
    return [
        Violation(invariant, breach)
        for invariant in INVARIANTS
        if invariant.number not in without
        for breach in invariant.breaches(history)
    ]
