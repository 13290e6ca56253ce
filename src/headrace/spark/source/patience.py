"""Waiting for a store that is away for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from headrace.errors import StoreUnavailable
from headrace.retry import doubling

_PAUSES = (0.05, 2.0)
"""The first and the longest, in seconds."""

_Answer = TypeVar("_Answer")


def patiently(call: Callable[[], _Answer], seconds: float) -> _Answer:
    """What the call returns. While the store cannot be reached it is called again, for so long."""
    end = time.monotonic() + seconds
    pauses = doubling(*_PAUSES)
    while True:
        try:
            return call()
        except StoreUnavailable:
            left = end - time.monotonic()
            if left <= 0:
                raise
            time.sleep(min(next(pauses), left))
