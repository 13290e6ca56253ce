"""What the pages say of states and reasons, and how they write numbers. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from headrace.model import State

ORDER = (
    *(State.BLOCKED, State.PENDING, State.RETRYING, State.LOST, State.RUNNING, State.CANCELLING),
    *(State.COMPLETED, State.FAILED, State.DEAD, State.CANCELLED, State.ABANDONED),
)
"""As a job goes through them: this is how pages list them."""

MEANINGS: Mapping[State, str] = {
    State.BLOCKED: "waits for other jobs",
    State.PENDING: "waits for a worker, or for its time",
    State.RETRYING: "an attempt failed; it runs again",
    State.LOST: "its worker vanished; it runs again",
    State.RUNNING: "leased to a worker",
    State.CANCELLING: "its worker was asked to stop",
    State.COMPLETED: "succeeded",
    State.FAILED: "failed for good",
    State.DEAD: "out of attempts, or of time",
    State.CANCELLED: "cancelled",
    State.ABANDONED: "cancelled, and its worker never answered",
}

SHORT_ID_CHARS = 8
_THOUSAND = 1000
_UNITS = ("", "k", "M", "G", "T")
_TEN = 10


def number(value: float) -> str:
    """Exact: `12,345`."""
    return f"{value:,}"


def compact(value: float) -> str:
    """Where there is little room: `999`, `1.2k`, `15k`, `10M`. Never more than there is."""
    unit = 0
    while value >= _THOUSAND and unit < len(_UNITS) - 1:
        value /= _THOUSAND
        unit += 1
    if unit and value < _TEN:
        return f"{math.floor(value * 10) / 10:.1f}".removesuffix(".0") + _UNITS[unit]
    return f"{math.floor(value)}{_UNITS[unit]}"


def size(count: int) -> str:
    """Bytes: `0 B`, `812 B`, `1.5 KB`, `3 MB`."""
    value, unit = float(count), 0
    names = ("B", "KB", "MB", "GB")
    while value >= 1024 and unit < len(names) - 1:  # noqa: PLR2004 - a kilobyte
        value /= 1024
        unit += 1
    text = f"{value:.1f}".removesuffix(".0") if value < _TEN else f"{value:.0f}"
    return f"{text} {names[unit]}"


def jobs_counted(count: int) -> str:
    """`1 job`, `2,000 jobs`."""
    return "1 job" if count == 1 else f"{count:,} jobs"


def iso(at: datetime) -> str:
    """For programs, with every microsecond."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def short_id(job_id: str) -> str:
    """The end of a UUID, which differs from job to job (its head may be a time); another id as it is."""
    is_uuid = len(job_id) == 36 and job_id.count("-") == 4  # noqa: PLR2004 - a UUID
    return f"…{job_id[-SHORT_ID_CHARS:]}" if is_uuid else job_id
