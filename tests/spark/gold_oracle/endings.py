"""Which ended attempts failed, and which were lost."""

from __future__ import annotations

from tests.spark.oracle import Row


def is_lost(attempt: Row) -> bool:
    """Its worker vanished; that may have spent the job's budget."""
    if attempt["outcome"] == "lost":
        return True
    return attempt["outcome"] in {"dead", "abandoned"} and attempt["code"] == "lease_expired"


def is_failed(attempt: Row) -> bool:
    """Its handler failed or ran out of time, and nobody had asked it to stop."""
    return attempt["outcome"] in {"retrying", "failed", "dead"} and not is_lost(attempt)
