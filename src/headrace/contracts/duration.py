"""A span of time as the specifications' callers may give it, and as Headrace counts it."""

from __future__ import annotations

from datetime import timedelta

Duration = float | timedelta
"""Seconds, or a timedelta."""


def seconds(value: Duration) -> float:
    """The same span in seconds; whether it is a sensible one is for its user to check."""
    return value.total_seconds() if isinstance(value, timedelta) else value
