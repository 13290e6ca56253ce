"""From the contract's new job to what the manager takes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from headrace import codec, validation
from headrace.contracts.backend_api.errors import InvalidArgumentError
from headrace.contracts.backend_api.values import Job, JobStatus, Kept, reads_as_kept
from headrace.contracts.presets import BACKEND_API
from headrace.errors import HeadraceError
from headrace.policy import Policy
from headrace.spec import JobSpec

_GIVEN = frozenset({"id", "status", "job_type", "payload", "tags", "created_at"})
"""What a submitter may say of a job; all other fields are history, and a new job has none."""

_KEPT_BYTES_MAX = 128 << 10
"""More than `Kept` needs besides the payload: 64 tags of 256 characters, a time, and its own frame."""


def policy_of(payload_bytes_max: int) -> Policy:
    """The preset with room for what is stored with a payload, and for bytes written as base64.

    The limit is the submitter's, and is checked on the payload as it was given.
    """
    room = payload_bytes_max * 4 // 3 + _KEPT_BYTES_MAX
    return msgspec.structs.replace(
        BACKEND_API, payload_bytes_max=min(room, codec.PAYLOAD_BYTES_MAX)
    )


POLICY = policy_of(BACKEND_API.payload_bytes_max)


def spec_of(job: object, payload_bytes_max: int) -> JobSpec:
    """The job to submit, or the error that says what is wrong with it.

    Its `created_at`, past or to come, is its place in line and nothing else: a job is eligible at once.
    """
    if not isinstance(job, Job):
        raise InvalidArgumentError(
            f"a job is needed, not {type(job).__name__}; {validation.UNCHANGED}"
        )
    if job.status != JobStatus.INITIAL_PENDING:
        raise InvalidArgumentError(
            f"a new job is INITIAL_PENDING, and this one says {job.status}; {validation.UNCHANGED}",
            job_id=job.id,
        )
    for field in msgspec.structs.fields(Job):
        if field.name not in _GIVEN and getattr(job, field.name) != field.default:
            raise InvalidArgumentError(
                f"a new job has no {field.name} yet: leave it out; {validation.UNCHANGED}",
                job_id=job.id,
            )
    created_at = None
    if job.created_at is not None:
        created_at = validation.check_time(job.created_at, "created_at")
    stored_tags = validation.check_tags(job.tags)
    given_tags = tuple(job.tags) if isinstance(job.tags, list) else stored_tags
    return JobSpec(
        id=validation.check_id(job.id),
        type=job.job_type,
        payload=_kept(
            job.payload,
            payload_bytes_max,
            tags=() if given_tags == stored_tags else given_tags,
            created_at=created_at,
        ),
        tags=stored_tags,
        run_at=created_at,
    )


def specs_of(jobs: Iterable[object] | None, payload_bytes_max: int) -> list[JobSpec]:
    """All of a batch, or the error that says which is wrong, by its place and its id."""
    if jobs is None or isinstance(jobs, str | bytes) or not isinstance(jobs, Iterable):
        raise InvalidArgumentError(f"a list of jobs is needed; {validation.UNCHANGED}")
    specs: list[JobSpec] = []
    for index, job in enumerate(jobs):
        try:
            specs.append(spec_of(job, payload_bytes_max))
        except HeadraceError as error:
            raise InvalidArgumentError(
                f"job {index} of the batch{_name(job)}: {error.message}",
                job_id=getattr(job, "id", None),
                index=index,
            ) from error
    return specs


def _kept(
    payload: Any, limit: int, *, tags: tuple[str, ...], created_at: datetime | None
) -> msgspec.Raw | Kept:
    """The payload as it is, unless something is to be kept with it, or it would be taken for that."""
    encoded = codec.encode(payload, limit=limit)
    if not tags and created_at is None and not reads_as_kept(encoded):
        return msgspec.Raw(encoded)
    return Kept(payload=msgspec.Raw(encoded), tags=tags, created_at=created_at)


def _name(job: object) -> str:
    return f" (id {job.id})" if isinstance(job, Job) else ""
