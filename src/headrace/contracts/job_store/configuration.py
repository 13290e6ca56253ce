"""JobManagerConfiguration: the specification's settings and defaults."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from msgspec.structs import force_setattr

from headrace import validation


class JobManagerConfiguration(msgspec.Struct, frozen=True):
    """How a JobManager treats the jobs it is given.

    The polling interval, the number of concurrent jobs and the interval of the stale check drive a
    `BackgroundService`; the manager by itself starts nothing.
    """

    default_max_retries: int = 3
    retry_delay_base_seconds: float = 2.0
    job_claim_timeout: timedelta = timedelta(minutes=5)
    max_concurrent_jobs: int = 10
    job_polling_interval_ms: int = 1000
    max_claim_batch_size: int = 10
    stale_job_claim_check_interval: timedelta = timedelta(minutes=1)

    def __post_init__(self) -> None:
        validation.check_limit(self.default_max_retries, "default_max_retries", minimum=0)
        base = validation.check_seconds(
            self.retry_delay_base_seconds, "retry_delay_base_seconds", zero=True
        )
        force_setattr(self, "retry_delay_base_seconds", base)
        for name in ("max_concurrent_jobs", "job_polling_interval_ms", "max_claim_batch_size"):
            validation.check_limit(getattr(self, name), name)
        for name in ("job_claim_timeout", "stale_job_claim_check_interval"):
            validation.check_seconds(getattr(self, name).total_seconds(), name)
