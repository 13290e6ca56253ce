"""Which fields of a job an update may change, from which status to which, and why not the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.contracts.job_store.entity import Job, JobStatus
from headrace.contracts.job_store.projection import text_of
from headrace.contracts.job_store.result import ErrorCode, Refused

_S = JobStatus

FIXED: Mapping[str, str] = {
    "name": "fixed when the job is created: workers are chosen by it",
    "payload": "fixed when the job is created: what was submitted is what runs",
    "max_retries": "fixed when the job is created",
}
OWN = ("created_at", "started_at", "completed_at", "last_updated_at")
"""What happened when is the store's to say. A copy may have anything there."""


def check(given: Job, shown: Job) -> None:
    """Raise, naming every field that cannot become what the given job says, unless there is none."""
    refused = dict(_refused(given, shown))
    if not refused:
        return
    ended = {
        _S.COMPLETED: ErrorCode.JOB_TERMINAL,
        _S.FAILED: ErrorCode.JOB_TERMINAL,
        _S.CANCELED: ErrorCode.JOB_CANCELED,
    }
    told = "; ".join(f"{name}: {why}" for name, why in refused.items())
    raise Refused(
        ended.get(shown.status, ErrorCode.INVALID_UPDATE),
        f"job {shown.id}, which is {shown.status}, cannot be updated: {told}; nothing was changed",
        refused,
    )


def own(given: Job, shown: Job) -> dict[str, str]:
    """The fields that the given job has otherwise than it was read, and that the store writes itself."""
    return {
        name: "the store writes it itself"
        for name in OWN
        if getattr(given, name) not in (None, getattr(shown, name))
    }


def _refused(given: Job, shown: Job) -> Iterator[tuple[str, str]]:
    source, target = shown.status, given.status
    if source in (_S.COMPLETED, _S.FAILED, _S.CANCELED):
        for name in ("status", *FIXED, "retry_count", "worker_id", "result", "exception"):
            if _differs(name, given, shown):
                yield name, f"the job is {source}; that stands"
        return
    for name, why in FIXED.items():
        if _differs(name, given, shown):
            yield name, why
    is_retry = source is _S.IN_PROGRESS and target is _S.SCHEDULED
    more = given.retry_count - shown.retry_count
    if more != 0 and not (is_retry and more == 1):
        yield "retry_count", "it grows by one, when a job in progress is Scheduled for a retry"
    if (
        given.retry_delay_until not in (None, shown.retry_delay_until)
        and target is not _S.SCHEDULED
    ):
        yield "retry_delay_until", f"only a Scheduled job has one, and this is to be {target}"
    if given.worker_id is not None and text_of(given.worker_id) != text_of(shown.worker_id):
        if source is _S.IN_PROGRESS:
            yield "worker_id", "a job goes to another worker only by a claim"
        elif target is not _S.IN_PROGRESS:
            yield "worker_id", "only a job in progress has one: claim it, or put it InProgress"
    noted = source is target is _S.IN_PROGRESS
    if _differs("result", given, shown) and not (noted or target is _S.COMPLETED):
        yield "result", f"it goes with Completed, or is noted while InProgress, not with {target}"
    failed = target is _S.FAILED or (is_retry and more == 1)
    if _differs("exception", given, shown) and not (noted or failed):
        yield (
            "exception",
            f"it goes with a failure, or is noted while InProgress, not with {target}",
        )


def _differs(name: str, given: Job, shown: Job) -> bool:
    """Whether the given job says something else of it; None may be no word on it."""
    value, present = getattr(given, name), getattr(shown, name)
    if value is None and name in ("max_retries", "worker_id"):
        return False
    if value is None and name in ("result", "exception") and given.status is not shown.status:
        return False
    return bool(value != present)
