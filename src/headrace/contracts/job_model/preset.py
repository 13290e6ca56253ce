"""The policy behind a queue of this specification: the preset, and what may be set in its place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from headrace.contracts.duration import Duration, seconds
from headrace.contracts.job_model.configuration import RetryConfig, TimeoutConfig
from headrace.contracts.job_model.job import FailureCategory
from headrace.contracts.presets import JOB_MODEL
from headrace.errors import InvalidInput
from headrace.policy import IdSource, Policy

RETRIABLE = frozenset({FailureCategory.TEMPORARY, FailureCategory.TIMEOUT, FailureCategory.SYSTEM})
"""What may be retried, and by default is."""


def policy_of(
    retry: RetryConfig | None,
    timeout: TimeoutConfig | None,
    idempotency_window: Duration | None,
    payload_bytes_max: int | None,
    retry_on: Iterable[FailureCategory | str],
) -> Policy:
    """The preset, with what the caller gave in its place.

    Ids are the system's all the same: no call takes one, and the adapter draws them before it
    submits so that the jobs of a batch can name each other.
    """
    given: dict[str, Any] = {"ids": IdSource.EITHER}
    if retry is not None:
        given |= {"max_attempts": retry.max_attempts, "backoff": retry.backoff}
    if timeout is not None:
        given |= {
            "timeout_seconds": timeout.execution,
            "lease_seconds": timeout.visibility,
            "lifetime_seconds": timeout.lifetime,
        }
    if idempotency_window is not None:
        given["key_window_seconds"] = seconds(idempotency_window)
    if payload_bytes_max is not None:
        given["payload_bytes_max"] = payload_bytes_max
    retriable = {FailureCategory.named(category) for category in retry_on}
    if FailureCategory.TEMPORARY not in retriable or not retriable <= RETRIABLE:
        raise InvalidInput(
            f"retry_on is {sorted(retriable)}; TEMPORARY is always retried, PERMANENT and CANCELLED never"
        )
    given["retry_on"] = frozenset(category.stored for category in retriable)
    return msgspec.structs.replace(JOB_MODEL, **given)
