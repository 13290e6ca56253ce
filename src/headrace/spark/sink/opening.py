"""The manager that a task, or the driver, submits with: the application's rules, made repeatable."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec.structs import replace

from headrace import validation
from headrace.app import Headrace
from headrace.connect import connect
from headrace.crypto import KeyRing
from headrace.errors import Contention, InvalidKeyRing, StoreUnavailable
from headrace.manager import JobManager
from headrace.policy import BUILT_IN, IdSource, OnDuplicateId, Policies, Policy
from headrace.spark.sink.options import SinkOptions
from headrace.worker.loading import load_app

PATIENCE_TRIES = 8
"""With pauses that double from a quarter of a second: half a minute in all."""
_PAUSE_SECONDS = 0.25

T = TypeVar("T")


def application(options: SinkOptions) -> Headrace | None:
    return None if options.app is None else load_app(options.app)


def key_ring(options: SinkOptions, app: Headrace | None) -> KeyRing | None:
    """The ring of the file that was named, of the application, or of the environment."""
    if options.keys is not None:
        return KeyRing.from_file(options.keys)
    if app is not None and app.keys is not None:
        return app.keys
    return KeyRing.from_environment()


async def open_manager(options: SinkOptions, *, primary_key: str | None) -> JobManager:
    """Whoever opens it closes it.

    `primary_key`: what the driver found to encrypt with. A task that has another, or none, would store
    in the open what was to be encrypted, and is refused.
    """
    app = application(options)
    keys = key_ring(options, app)
    if (None if keys is None else keys.primary) != primary_key:
        raise InvalidKeyRing(
            f"the driver encrypts with {_told(primary_key)} and this task with "
            f"{_told(None if keys is None else keys.primary)}; {validation.UNCHANGED}: give the executors "
            "the same ring (spark.executorEnv.HEADRACE_KEYS, or the option keys)"
        )
    policies = (None if app is None else app.policies) or Policies()
    return await connect(
        options.url,
        policies=repeatable(policies),
        tenant=None if app is None else app.tenant,
        keys=keys,
    )


def repeatable(policies: Policies) -> Policies:
    """The same, but for ids: the sink names its jobs, and finds one that it has stored before."""
    named = {**BUILT_IN, **policies.queues}
    return Policies(
        _repeatable(policies.default),
        {queue: _repeatable(policy) for queue, policy in named.items()},
    )


def _repeatable(policy: Policy) -> Policy:
    return replace(policy, ids=IdSource.EITHER, on_duplicate_id=OnDuplicateId.EXISTING)


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """Try again while the store is busy or away. Only for calls that may be repeated, as all are here."""
    for tries in range(PATIENCE_TRIES):
        try:
            return await call()
        except (Contention, StoreUnavailable):
            if tries == PATIENCE_TRIES - 1:
                raise
        await asyncio.sleep(_PAUSE_SECONDS * 2**tries * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
    raise AssertionError("unreachable")


def _told(key: str | None) -> str:
    return "no key" if key is None else f"key {key}"
