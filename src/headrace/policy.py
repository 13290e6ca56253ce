"""What a queue allows: the numbers and choices behind the lifecycle, and a preset per specification."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from headrace import input_checks, validation
from headrace.codec import PAYLOAD_BYTES_DEFAULT, PAYLOAD_BYTES_MAX
from headrace.duration import seconds_of
from headrace.errors import InvalidInput, InvalidLimit
from headrace.model import Category
from headrace.retry import Backoff, Exponential

_MINUTE = 60.0
_DAY = 86_400.0


class CancelMode(enum.StrEnum):
    """What cancelling does to a job that runs."""

    COOPERATIVE = "cooperative"
    """Ask the worker; it answers, or its lease lapses."""
    IMMEDIATE = "immediate"
    """Cancelled now, the lease is void: cancel wins."""
    NOT_STARTED = "not_started"
    """Refused: only jobs that wait are cancelled."""


class IdSource(enum.StrEnum):
    """Who names a job."""

    SERVER = "server"
    CLIENT = "client"
    EITHER = "either"


class OnDuplicateId(enum.StrEnum):
    """What a second submission with the id of a stored job gets."""

    ERROR = "error"
    EXISTING = "existing"


_DURATIONS = (
    *("lease_seconds", "timeout_seconds", "lifetime_seconds", "key_window_seconds"),
    *("keep_completed_seconds", "keep_other_seconds"),
)


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one queue. Durations in seconds, or text as in `"2h"`; None: no such bound."""

    lease_seconds: float | None = 30.0
    fenced: bool = True
    """False: workers may write without a token (the specification has none)."""
    max_attempts: int | None = 3
    backoff: Backoff = Exponential()
    retry_on: frozenset[Category] = frozenset(
        {Category.TEMPORARY, Category.TIMEOUT, Category.SYSTEM}
    )
    cancel: CancelMode = CancelMode.COOPERATIVE
    key_window_seconds: float | None = _DAY
    """How long an idempotency key holds. None: without end."""
    key_released_when_terminal: bool = True
    ids: IdSource = IdSource.EITHER
    on_duplicate_id: OnDuplicateId = OnDuplicateId.ERROR
    timeout_seconds: float | None = 30 * _MINUTE
    lifetime_seconds: float | None = 7 * _DAY
    keep_completed_seconds: float | None = 30 * _DAY
    keep_other_seconds: float | None = 90 * _DAY
    """How long failed, dead, cancelled and abandoned jobs are kept."""
    payload_bytes_max: int = PAYLOAD_BYTES_DEFAULT
    encrypted: bool = True
    """Whether a manager with a key ring encrypts; without a ring it does not matter."""
    deliver_callbacks: bool = True
    """A job's `callback_url` is told of its end. False: the url is only kept, as the specifications do."""

    def __post_init__(self) -> None:
        for name in _DURATIONS:
            _number(self, name)
        input_checks.check_fields(self)
        for name in ("lease_seconds", "timeout_seconds", "lifetime_seconds", "key_window_seconds"):
            value = _number(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise InvalidLimit(f"{name} is {value}; it must be more than 0, or None")
        for name in ("keep_completed_seconds", "keep_other_seconds"):
            value = _number(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise InvalidLimit(f"{name} is {value}; it must be 0 or more, or None")
        if self.max_attempts is not None:
            validation.check_limit(self.max_attempts, "max_attempts")
        if not isinstance(self.backoff, Backoff):
            raise InvalidInput(
                f"backoff is {validation.told(self.backoff)}: write Exponential(initial=1, cap=3600), "
                "Constant(5), or Custom(…) of headrace.retry"
            )
        if not 0 < self.payload_bytes_max <= PAYLOAD_BYTES_MAX:
            raise InvalidLimit(
                f"payload_bytes_max is {self.payload_bytes_max}; it must be 1 to {PAYLOAD_BYTES_MAX}"
            )


def _number(holder: Policy | Policies, name: str) -> float | None:
    """A duration of it as seconds, however it was given."""
    try:
        value: Any = seconds_of(getattr(holder, name))
    except ValueError as error:
        raise InvalidLimit(
            f"{name} is {validation.told(getattr(holder, name))}, not a duration: write 90s, 5m, 2h or 30d"
        ) from error
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise InvalidLimit(f"{name} is {validation.told(value)}; it must be seconds, or None")
    force_setattr(holder, name, value)
    return value


WEBHOOKS_QUEUE = "headrace.webhooks"

WEBHOOKS = Policy(
    lease_seconds=60.0,
    # Some 41 hours in all: a receiver may be down for a day and a night.
    max_attempts=10,
    backoff=Exponential(initial=5.0, multiplier=5.0, cap=12 * 60 * _MINUTE),
    timeout_seconds=_MINUTE,
    # It is born with the job it tells of, which may itself wait for longer than any bound chosen here.
    lifetime_seconds=None,
    # It holds ids and a url, which stand in the open in the job it tells of.
    encrypted=False,
    deliver_callbacks=False,
)

BUILT_IN: Mapping[str, Policy] = {WEBHOOKS_QUEUE: WEBHOOKS}
"""Headrace's own queues, unless they are given another policy."""


class Policies(msgspec.Struct, frozen=True):
    """The policy of each queue: its own, or the default (that of Headrace's own queues is built in)."""

    default: Policy = Policy()
    queues: Mapping[str, Policy] = {}
    keep_events_seconds: float | None = None
    """How long maintenance leaves events in the log, at least: it trims none that a reader does not hold.
    None: for ever."""
    trim_without_readers: bool = False
    """Whether maintenance trims the log where no reader is registered."""

    def __post_init__(self) -> None:
        _number(self, "keep_events_seconds")
        input_checks.check_fields(self)
        keep = _number(self, "keep_events_seconds")
        if keep is not None and not 0 <= keep < float("inf"):
            raise InvalidLimit(f"keep_events_seconds is {keep}; it must be 0 or more, or None")

    def of(self, queue: str) -> Policy:
        return self.queues.get(queue) or BUILT_IN.get(queue, self.default)
