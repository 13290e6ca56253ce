"""How a job is retried and how long things may take: the specification's two configurations."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import assert_never

import msgspec
from msgspec.structs import force_setattr

from headrace import retry, validation
from headrace.contracts.duration import Duration, seconds
from headrace.errors import InvalidInput, InvalidLimit

CustomFunction = Callable[[int, float, float], Duration]
"""(n, initial_delay, max_delay) to the delay before the n-th retry; seconds in, a duration out."""

_MINUTE = 60.0
_HOUR = 3600.0
_DAY = 86_400.0


class BackoffStrategy(enum.StrEnum):
    """How the delay grows with n, the number of the retry."""

    CONSTANT = "CONSTANT"
    """initial_delay"""
    LINEAR = "LINEAR"
    """initial_delay * n, at most max_delay"""
    EXPONENTIAL = "EXPONENTIAL"
    """initial_delay * multiplier ^ (n - 1), at most max_delay"""
    CUSTOM = "CUSTOM"
    """custom_function(n, initial_delay, max_delay), at most max_delay"""


class RetryConfig(msgspec.Struct, frozen=True):
    """When and how often a job is tried again. Durations may be given as timedelta; kept in seconds."""

    max_attempts: int | None = 3
    """Executions, the first included. None: without end."""
    backoff_strategy: BackoffStrategy = BackoffStrategy.EXPONENTIAL
    initial_delay: Duration = 1.0
    max_delay: Duration = _HOUR
    multiplier: float = 2.0
    custom_function: CustomFunction | None = None
    jitter: bool = False
    """Spread each delay by ±10 %. Constant, linear and exponential only."""

    def __post_init__(self) -> None:
        force_setattr(self, "backoff_strategy", _strategy(self.backoff_strategy))
        for name in ("initial_delay", "max_delay"):
            value = validation.check_seconds(seconds(getattr(self, name)), name, zero=True)
            force_setattr(self, name, value)
        if not 0 < self.multiplier < math.inf:
            raise InvalidLimit(
                f"the multiplier is {self.multiplier}; it must be more than 0; {validation.UNCHANGED}"
            )
        if self.max_attempts is not None:
            validation.check_limit(self.max_attempts, "max_attempts")
        is_custom = self.backoff_strategy is BackoffStrategy.CUSTOM
        if is_custom != (self.custom_function is not None):
            raise InvalidInput(
                "the CUSTOM strategy and a custom_function come together or not at all; "
                f"{validation.UNCHANGED}"
            )

    @property
    def backoff(self) -> retry.Backoff:
        """The same as Headrace computes it."""
        initial, cap = seconds(self.initial_delay), seconds(self.max_delay)
        match self.backoff_strategy:
            case BackoffStrategy.CONSTANT:
                return retry.Constant(initial=initial, jitter=self.jitter)
            case BackoffStrategy.LINEAR:
                return retry.Linear(initial=initial, cap=cap, jitter=self.jitter)
            case BackoffStrategy.EXPONENTIAL:
                return retry.Exponential(
                    initial=initial, multiplier=self.multiplier, cap=cap, jitter=self.jitter
                )
            case BackoffStrategy.CUSTOM:
                function = self.custom_function
                assert function is not None
                return retry.Custom(
                    lambda n, first, most: seconds(function(n, first, most)),
                    initial=initial,
                    cap=cap,
                )
            case _:
                assert_never(self.backoff_strategy)

    def delay(self, n: int) -> float:
        """Seconds before the n-th retry (from 1), jitter aside."""
        return self.backoff.delay(validation.check_limit(n, "n"))


class TimeoutConfig(msgspec.Struct, frozen=True):
    """How long things may take. Durations may be given as timedelta; kept in seconds."""

    execution: Duration | None = 30 * _MINUTE
    """One run of the handler. A job may ask for less than its queue's, never for more."""
    visibility: Duration | None = 5 * _MINUTE
    """How long a dispatched job stays invisible without a heartbeat before it is reclaimed."""
    lifetime: Duration | None = 7 * _DAY
    """From submission to a terminal state."""

    def __post_init__(self) -> None:
        for name in ("execution", "visibility", "lifetime"):
            value = getattr(self, name)
            if value is not None:
                force_setattr(self, name, validation.check_seconds(seconds(value), name))


def _strategy(value: str) -> BackoffStrategy:
    try:
        return BackoffStrategy(value)
    except ValueError:
        names = ", ".join(BackoffStrategy)
        raise InvalidInput(
            f"{validation.told(value)} is not one of {names}; {validation.UNCHANGED}"
        ) from None
