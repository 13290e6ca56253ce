"""The policies of the five specifications: what each says of leases, attempts, backoff and the rest."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.duration import DELAY_SECONDS_MAX
from headrace.policy import CancelMode, IdSource, OnDuplicateId, Policy
from headrace.retry import Exponential, FullJitter, NoBackoff

_MINUTE = 60.0

BACKEND_API = Policy(
    lease_seconds=None,
    fenced=False,
    max_attempts=None,
    backoff=NoBackoff(),
    ids=IdSource.CLIENT,
    timeout_seconds=None,
    lifetime_seconds=None,
    keep_other_seconds=None,
    deliver_callbacks=False,
)

QUEUE_SEMANTICS = Policy(
    lease_seconds=5.0,
    max_attempts=4,
    backoff=FullJitter(initial=0.5, cap=30.0),
    ids=IdSource.CLIENT,
    timeout_seconds=5 * _MINUTE,
    lifetime_seconds=None,
    keep_completed_seconds=None,
    keep_other_seconds=None,
    deliver_callbacks=False,
)

JOB_MODEL = Policy(
    lease_seconds=5 * _MINUTE,
    max_attempts=3,
    # the specification's jitter is optional, and off unless asked for
    backoff=Exponential(initial=1.0, multiplier=2.0, cap=3600.0, jitter=False),
    key_released_when_terminal=False,
    ids=IdSource.SERVER,
)

JOB_STORE = Policy(
    lease_seconds=5 * _MINUTE,
    max_attempts=4,
    # 2^n × 2 s with n counted after the increment: 4, 8, 16
    backoff=Exponential(initial=4.0, multiplier=2.0, cap=DELAY_SECONDS_MAX, jitter=False),
    cancel=CancelMode.NOT_STARTED,
    on_duplicate_id=OnDuplicateId.EXISTING,
    lifetime_seconds=None,
    keep_other_seconds=None,
    deliver_callbacks=False,
)

CONFORMANCE = Policy(
    lease_seconds=5 * _MINUTE,
    max_attempts=4,
    backoff=NoBackoff(),
    cancel=CancelMode.IMMEDIATE,
    key_window_seconds=None,
    ids=IdSource.SERVER,
    timeout_seconds=None,
    lifetime_seconds=None,
    keep_completed_seconds=None,
    keep_other_seconds=None,
    deliver_callbacks=False,
)

PRESETS: Mapping[str, Policy] = {
    "default": Policy(),
    "backend_api": BACKEND_API,
    "queue_semantics": QUEUE_SEMANTICS,
    "job_model": JOB_MODEL,
    "job_store": JOB_STORE,
    "conformance": CONFORMANCE,
}
