"""The limits of a queue as values: how much may run, how fast it starts, who takes turns, how much may wait.

Pure. What a claim needs besides the limits themselves (which buckets are not full, who has had a turn) is
the `GateState`; limits and state together are the body of the queue's gate. `headrace.allocation` decides
with them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import force_setattr, replace

from headrace import validation
from headrace.duration import DELAY_SECONDS_MAX, Seconds, parse
from headrace.errors import InvalidInput, InvalidLimit, StoreCorrupt

NS = 1_000_000_000
BYTES_MAX = 2**53
"""Numbers up to here are exact in every JSON reader."""
WEIGHT_MIN, WEIGHT_MAX = 0.001, 1000.0
WEIGHTS_MAX = 1000
_UNITS = {1.0: "s", 60.0: "m", 3600.0: "h", 86_400.0: "d"}

_ADMITTING = (
    "waiting_jobs_max",
    "waiting_bytes_max",
    "tenant_waiting_jobs_max",
    "tenant_waiting_bytes_max",
)


class Rate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token bucket: `jobs` tokens come in every `per_seconds`, at most `burst` are kept.

    In any span of T seconds at most `burst + T * jobs / per_seconds` jobs start.
    """

    jobs: int
    per_seconds: float = 1.0
    burst: int | None = None
    """None: as many as `jobs`. 1: evenly spaced."""

    if TYPE_CHECKING:

        def __init__(
            self, jobs: int, per_seconds: Seconds = 1.0, burst: int | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        validation.check_limit(self.jobs, "the jobs of a rate")
        seconds = validation.check_seconds(self.per_seconds, "the time of a rate")
        force_setattr(self, "per_seconds", seconds)
        if self.burst is not None:
            validation.check_limit(self.burst, "the burst of a rate")
        if self.capacity * seconds / self.jobs > DELAY_SECONDS_MAX:
            raise InvalidLimit(
                f"a rate of {self.jobs} in {seconds} seconds takes more than ten years to fill a burst of "
                f"{self.capacity}; {validation.UNCHANGED}"
            )

    @classmethod
    def parse(cls, text: str, burst: int | None = None) -> Rate:
        """A rate as people write it: 5/s, 100/m, 5/10s."""
        jobs, slash, span = text.partition("/")
        try:
            if not slash or not span:
                raise ValueError(text)  # noqa: TRY301 - one message for all that is not a rate
            seconds = parse(span if span[0].isdecimal() else f"1{span}")
            return cls(int(jobs), seconds, burst)
        except ValueError:
            raise InvalidLimit(f"{text!r} is not a rate: write 5/s, 100/m or 1/10s") from None

    def __str__(self) -> str:
        """As `parse` reads it."""
        seconds = f"{self.per_seconds:f}".rstrip("0").rstrip(".")
        return f"{self.jobs}/{_UNITS.get(self.per_seconds, f'{seconds}s')}"

    @property
    def capacity(self) -> int:
        """How many tokens the bucket holds when it is full."""
        return self.jobs if self.burst is None else self.burst

    @property
    def interval_ns(self) -> int:
        """The time one token takes to come, rounded up: never faster than the rate."""
        return max(1, math.ceil(self.per_seconds * NS / self.jobs))


class QueueLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The limits of one queue. None: no such limit.

    A key is the `limit_key` of a job, within its tenant; jobs without one are under no limit per key.
    """

    # what claims obey, exactly
    concurrency: int | None = None
    """So many of its jobs are leased at a time."""
    key_concurrency: int | None = None
    """The same of each key."""
    tenant_concurrency: int | None = None
    """The same of each tenant."""
    rate: Rate | None = None
    """So fast its jobs start. Every attempt is a start."""
    key_rate: Rate | None = None
    """The same of each key."""
    fair: bool = False
    """Tenants take turns, whoever waits longest in line."""
    weights: Mapping[str, float] = {}
    """How many turns a tenant gets for one of the others; 1 where nothing is said."""

    # what submissions obey, softly across processes
    waiting_jobs_max: int | None = None
    waiting_bytes_max: int | None = None
    """The payloads of all jobs that wait."""
    tenant_waiting_jobs_max: int | None = None
    tenant_waiting_bytes_max: int | None = None

    def __post_init__(self) -> None:
        for name in ("concurrency", "key_concurrency", "tenant_concurrency"):
            _check_count(name, getattr(self, name), validation.LIMIT_MAX)
        for name in _ADMITTING:
            _check_count(name, getattr(self, name), BYTES_MAX)
        for name in ("rate", "key_rate"):
            _check_type(name, getattr(self, name), Rate, None)
        _check_type("fair", self.fair, bool)
        _check_type("weights", self.weights, Mapping)
        if len(self.weights) > WEIGHTS_MAX:
            raise InvalidLimit(
                f"there are {len(self.weights)} weights, the limit is {WEIGHTS_MAX}; {validation.UNCHANGED}"
            )
        if self.weights and not self.fair:
            raise InvalidLimit(
                f"weights are for tenants that take turns: set fair, too; {validation.UNCHANGED}"
            )
        for tenant, weight in self.weights.items():
            _check_weight(validation.check_name(tenant, "tenant of a weight"), weight)

    @property
    def for_claims(self) -> QueueLimits:
        """Only what claims obey."""
        return replace(self, **dict.fromkeys(_ADMITTING))

    @property
    def for_admission(self) -> QueueLimits:
        """Only what submissions obey."""
        return QueueLimits(**{name: getattr(self, name) for name in _ADMITTING})

    @property
    def counts_leases(self) -> bool:
        """Whether it matters to claims how many jobs are leased."""
        counted = (self.concurrency, self.key_concurrency, self.tenant_concurrency)
        return counted != (None, None, None)

    @property
    def are_none(self) -> bool:
        return self == QueueLimits()

    def with_admission(self, other: QueueLimits) -> QueueLimits:
        """These limits for claims, and those of the other for submissions."""
        return replace(self, **{name: getattr(other, name) for name in _ADMITTING})

    def weight(self, tenant: str) -> float:
        return self.weights.get(tenant, 1.0)


class GateState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What changes as jobs are claimed. A bucket is kept as the time at which it will be full again."""

    full_at_ns: int = 0
    """The queue's bucket."""
    keys_full_at_ns: Mapping[str, Mapping[str, int]] = {}
    """The buckets that are not full, by tenant and key."""
    leads: Mapping[int, Mapping[str, float]] = {}
    """By priority and tenant: how far ahead of its fair share it is, in turns of weight 1."""


class Gate(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a queue's gate holds."""

    limits: QueueLimits
    state: GateState = GateState()

    def under(self, limits: QueueLimits) -> Gate:
        """The gate with other limits. Buckets whose rate changes start anew, and full."""
        old, state = self.limits, self.state
        return Gate(
            limits,
            GateState(
                state.full_at_ns if limits.rate == old.rate else 0,
                state.keys_full_at_ns if limits.key_rate == old.key_rate else {},
                state.leads if limits.fair else {},
            ),
        )


def encode(body: Gate | QueueLimits) -> bytes:
    return msgspec.json.encode(body)


def decode_gate(queue: str, body: bytes) -> Gate:
    return _decode(queue, body, Gate)


def decode_limits(queue: str, body: bytes) -> QueueLimits:
    return _decode(queue, body, QueueLimits)


_Body = TypeVar("_Body", Gate, QueueLimits)


def _decode(queue: str, body: bytes, type_: type[_Body]) -> _Body:
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, InvalidInput) as error:
        raise StoreCorrupt(
            f"the stored limits of queue {queue} cannot be read: {error}; nothing was changed"
        ) from error


def _check_count(name: str, value: object, maximum: int) -> None:
    if value is not None:
        validation.check_limit(value, name, maximum=maximum)


def _check_type(name: str, value: object, *types: type | None) -> None:
    known = [type(None) if one is None else one for one in types]
    if not isinstance(value, tuple(known)):
        words = " or ".join(one.__name__ for one in known)
        raise InvalidLimit(
            f"{name} is {validation.told(value)}, which is not a {words}; {validation.UNCHANGED}"
        )


def _check_weight(tenant: str, weight: object) -> None:
    number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not number or not WEIGHT_MIN <= weight <= WEIGHT_MAX:  # type: ignore[operator]  # a number by now
        raise InvalidLimit(
            f"the weight of tenant {tenant} is {weight!r}; it must be from {WEIGHT_MIN} to {WEIGHT_MAX:.0f}; "
            f"{validation.UNCHANGED}"
        )
