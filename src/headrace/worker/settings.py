"""How a worker works: every number in one place."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Sequence

import msgspec
from msgspec.structs import force_setattr

from headrace import input_checks, validation
from headrace.duration import seconds_of
from headrace.errors import InvalidLimit

CONCURRENCY_MAX = 10_000
SECONDS_MAX = 3600.0


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Safe to leave alone. Durations in seconds."""

    queues: Sequence[str] | None = None
    """None: every queue."""
    tags: Sequence[str] = ()
    concurrency: int = 50
    """Handlers that run at once."""
    batch: int = 500
    """Jobs taken in one claim, and outcomes written in one step, at most."""
    poll_seconds: float = 1.0
    """An idle worker asks this often, should a hint be missed. What becomes due does not wait for it."""
    watch_seconds: float = 0.4
    """How often a worker looks whether jobs it runs were cancelled."""
    grace_seconds: float = 30.0
    """How long a stopping worker lets handlers finish before it gives their jobs back."""
    stop_seconds: float = 5.0
    """How long a handler that was told to stop may take before it is left behind."""
    lease_seconds: float | None = None
    """None: each job's own."""
    isolate_suspects: bool = True
    """Run jobs that have lost two workers in a child process, so that they take nobody along.

    One loss says little: workers are killed for many reasons. What a program opens when it starts is not
    there in a child."""
    children: int = 4
    """Child processes at once, for isolated handlers."""
    child_jobs: int | None = 1000
    """Jobs that one child runs before it is replaced. None: as many as come."""
    child_recycle_mb: int | None = 512
    """A child that has grown beyond this is replaced after its job."""
    child_memory_mb: int | None = None
    """A child that asks for more is refused it: MemoryError, category SYSTEM."""
    maintenance: bool = True

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if name.endswith("_seconds"):
                force_setattr(self, name, _seconds(name, getattr(self, name)))
        input_checks.check_fields(self)
        for name, most in (("concurrency", CONCURRENCY_MAX), ("batch", 1000), ("children", 1000)):
            value = getattr(self, name)
            if not 1 <= value <= most:
                raise InvalidLimit(f"{name} is {value}; it must be 1 to {most}")
        for name in ("poll_seconds", "watch_seconds", "stop_seconds"):
            value = getattr(self, name)
            if not 0 < value <= SECONDS_MAX:
                raise InvalidLimit(
                    f"{name} is {value}; it must be more than 0, at most {SECONDS_MAX:g}"
                )
        if self.grace_seconds < 0:
            raise InvalidLimit(f"grace_seconds is {self.grace_seconds}; it must not be negative")


def _seconds(name: str, value: object) -> object:
    try:
        return seconds_of(value)
    except ValueError as error:
        raise InvalidLimit(
            f"{name} is {validation.told(value)}, not a duration: write 90s, 5m, 2h or 30d"
        ) from error


def worker_name() -> str:
    """Unlike any other, also after a restart: a new process must not pass for the one before."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{secrets.token_hex(3)}"
