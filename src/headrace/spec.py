"""What a caller submits, and the first draft of a job made from it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import UNSET, UnsetType

from headrace import codec, retry, validation
from headrace.discreet import Discreet
from headrace.errors import InvalidId, InvalidInput, InvalidLimit, InvalidTime
from headrace.model import (
    DEFAULT_QUEUE,
    Dependency,
    DependencyKind,
    Job,
    Priority,
    State,
    new_id,
)
from headrace.policy import IdSource, Policy


class JobSpec(Discreet, frozen=True, kw_only=True):
    """A job to be. What is left out comes from the policy of its queue."""

    type: str
    payload: Any = None
    queue: str = DEFAULT_QUEUE
    tenant: str | None = None
    id: str | None = None
    """None: a random UUID."""
    priority: int = Priority.NORMAL
    run_at: datetime | None = None
    """Not before this. None: at once."""
    delay_seconds: float | None = None
    """The same, from now."""
    tags: Iterable[str] | Mapping[str, Any] = ()
    key: str | None = None
    """The idempotency key: while it is held, submitting it again gives the same job."""
    key_hold_seconds: float | None = None
    """Hold the key for so long, whether or not the job has ended. None: as the queue's policy says."""
    limit_key: str | None = None
    """What the per-key limits of its queue count it by."""
    after: Iterable[Dependency | str] = ()
    """Ids of jobs, stored or of the same batch, that must come before."""
    max_attempts: int | UnsetType | None = UNSET
    lease_seconds: float | UnsetType | None = UNSET
    timeout_seconds: float | UnsetType | None = UNSET
    lifetime_seconds: float | UnsetType | None = UNSET
    backoff: retry.StoredBackoff | None = None
    correlation_id: str | None = None
    callback_url: str | None = None
    """Told of the job's end by a signed request, where the queue's policy delivers."""
    on_success: Sequence[JobSpec] = ()
    """Stored with this job; run once it has completed."""
    on_failure: Sequence[JobSpec] = ()
    """Stored with this job; run once it has ended in any other way."""


def draft(
    spec: JobSpec,
    policy: Policy,
    now: datetime,
    *,
    tenant: str,
    parent_id: str | None = None,
) -> Job:
    """The job as its submitter described it; not yet placed among its dependencies.

    Raises the InvalidInput that says what is wrong.
    """
    lifetime = _or(spec.lifetime_seconds, policy.lifetime_seconds, "lifetime_seconds")
    return Job(
        id=_id(spec, policy),
        tenant=validation.check_name(tenant, "tenant"),
        queue=validation.check_name(spec.queue, "queue"),
        type=validation.check_name(spec.type, "type"),
        tags=validation.check_tags(spec.tags),
        payload_json=codec.encode(spec.payload, limit=policy.payload_bytes_max),
        priority=validation.check_priority(spec.priority),
        created_at=now,
        key=None if spec.key is None else validation.check_key(spec.key),
        limit_key=_optional(spec.limit_key, "the limit key", validation.KEY_CHARS_MAX),
        parent_id=parent_id,
        correlation_id=check_correlation_id(spec.correlation_id),
        callback_url=_url(spec.callback_url),
        max_attempts=_attempts(spec.max_attempts, policy.max_attempts),
        lease_seconds=_or(spec.lease_seconds, policy.lease_seconds, "lease_seconds"),
        timeout_seconds=_timeout(spec, policy),
        expires_at=None if lifetime is None else now + timedelta(seconds=lifetime),
        backoff_json=None if spec.backoff is None else _backoff(spec.backoff),
        state=State.PENDING,
        run_at=_run_at(spec, now),
        updated_at=now,
    )


def dependencies(spec: JobSpec) -> tuple[Dependency, ...]:
    """In order, one per job: AFTER where only an id is given."""
    if isinstance(spec.after, str) or not isinstance(spec.after, Iterable):
        raise InvalidInput(f"after must be a list of dependencies; {validation.UNCHANGED}")
    found: dict[str, Dependency] = {}
    for item in spec.after:
        one = item if isinstance(item, Dependency) else Dependency(item)
        if not isinstance(one.kind, DependencyKind):
            raise InvalidInput(f"{one.kind!r} is not a kind of dependency; {validation.UNCHANGED}")
        job_id = validation.check_id(one.job_id)
        found[job_id] = stricter(found[job_id], one) if job_id in found else one
    return tuple(found.values())


def key_hold_seconds(spec: JobSpec) -> float | None:
    """How long the job asks for its key to be held, ended or not; None leaves that to the policy."""
    if spec.key_hold_seconds is None:
        return None
    if spec.key is None:
        raise InvalidInput(
            f"key_hold_seconds holds a key, and none was given; {validation.UNCHANGED}"
        )
    return validation.check_seconds(spec.key_hold_seconds, "key_hold_seconds")


def stricter(one: Dependency, other: Dependency) -> Dependency:
    """Of two dependencies on the same job, the one that asks for more: any kind but AFTER_ANY."""
    return other if one.kind is DependencyKind.AFTER_ANY else one


def check_correlation_id(value: object) -> str | None:
    return (
        None
        if value is None
        else validation.check_text(value, "the correlation id", validation.KEY_CHARS_MAX)
    )


def _id(spec: JobSpec, policy: Policy) -> str:
    if spec.id is None:
        if policy.ids is IdSource.CLIENT:
            raise InvalidId(
                f"this queue's jobs are named by their submitter, and no id was given; {validation.UNCHANGED}"
            )
        return new_id()
    if policy.ids is IdSource.SERVER:
        raise InvalidId(
            f"this queue's jobs are named by the server; leave the id out; {validation.UNCHANGED}"
        )
    return validation.check_id(spec.id)


def _run_at(spec: JobSpec, now: datetime) -> datetime:
    """The due time; at once means the time of submission, so that order is first come, first served."""
    if spec.run_at is not None and spec.delay_seconds is not None:
        raise InvalidTime(f"give run_at or delay_seconds, not both; {validation.UNCHANGED}")
    if spec.delay_seconds is not None:
        return now + timedelta(
            seconds=validation.check_seconds(spec.delay_seconds, "delay_seconds", zero=True)
        )
    if spec.run_at is not None:
        return validation.check_time(spec.run_at, "run_at")
    return now


def _attempts(given: int | UnsetType | None, default: int | None) -> int | None:
    if given is UNSET:
        return default
    return None if given is None else validation.check_limit(given, "max_attempts")


def _or(given: float | UnsetType | None, default: float | None, what: str) -> float | None:
    if given is UNSET:
        return default
    return None if given is None else validation.check_seconds(given, what)


def _timeout(spec: JobSpec, policy: Policy) -> float | None:
    """A job may ask for a shorter execution timeout than its queue's, never for a longer one."""
    asked = _or(spec.timeout_seconds, policy.timeout_seconds, "timeout_seconds")
    most = policy.timeout_seconds
    if most is not None and (asked is None or asked > most):
        raise InvalidLimit(
            f"timeout_seconds is {asked}, the queue's limit is {most}; {validation.UNCHANGED}"
        )
    return asked


def _backoff(backoff: retry.StoredBackoff) -> bytes:
    if isinstance(backoff, retry.Custom):
        raise InvalidInput(
            "a custom backoff is code and cannot be stored with a job: "
            f"put it into the queue's policy; {validation.UNCHANGED}"
        )
    return retry.encode(backoff)


def _optional(value: str | None, what: str, chars_max: int) -> str | None:
    return None if value is None else validation.check_text(value, what, chars_max)


def _url(value: str | None) -> str | None:
    return None if value is None else validation.check_url(value, "the callback url")
