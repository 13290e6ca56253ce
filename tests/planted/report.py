"""Defects of the report: figures that are wrong, and things to do that are not said."""

from __future__ import annotations

from datetime import timedelta

from headrace.report import advice, capacity, charts, gold, rollup
from headrace.report.percentiles import Spread
from headrace.report.sections import errors, objectives, outcomes, retries
from tests.planted.defect import Defect, patched

HALF = "half and most"
MARKED = "marked"
COST = "cost of retries"
SHORT = "short time"
MINUTES = "minutes"
BEFORE = "before"
COMMAND = "command"
LABELS = "labels"
BURNED = "burned"
ADVICE = "advice"

OF_THE_REPORT: dict[str, tuple[str, Defect]] = {
    "percentiles end at what they are at most": (
        HALF,
        patched(Spread, "_about", lambda spread, wanted: spread.longest),
    ),
    "a broken promise of starts is not marked": (
        MARKED,
        patched(objectives, "late", lambda of: []),
    ),
    "what failed for good counts as retried": (
        COST,
        patched(retries, "_AGAIN", ("retrying", "lost", "failed")),
    ),
    "a short time begins with the next hour": (SHORT, patched(gold, "LONG", timedelta())),
    "a short time is drawn by the hour": (MINUTES, patched(rollup, "SHORT", timedelta())),
    "the time before is not compared": (BEFORE, patched(gold, "_before", lambda *of: None)),
    "a command looks for the code alone": (COMMAND, patched(errors, "_LITERAL_MIN", 10_000)),
    "names are cut at their end": (
        LABELS,
        patched(charts, "shortened", lambda names, chars: {one: one[:chars] for one in names}),
    ),
    "what never burned is drawn": (BURNED, patched(objectives, "ROWS_MAX", 0)),
    "an outage passes for a short lease": (ADVICE, patched(advice, "_moments", lambda of: [])),
    "types that fail for good are not named": (ADVICE, patched(outcomes, "by_type", lambda of: [])),
    "slots are missed though many are idle": (ADVICE, patched(capacity, "IDLE", 0.0)),
}
"""Each with the check that must notice it."""
