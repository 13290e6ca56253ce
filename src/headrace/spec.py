"""What a caller submits, and the first draft of a job made from it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from headrace import codec, retry, validation
from headrace.duration import Seconds
from headrace.errors import InvalidId, InvalidInput, InvalidLimit, InvalidTime
from headrace.input_checks import looked_into_later
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
from headrace.redaction import Redacted

After = Dependency | Job | str | Iterable[Dependency | Job | str]


@looked_into_later
class JobSpec(Redacted, frozen=True, kw_only=True):
    """A job to be. What is left out comes from the policy of its queue."""

    type: str
    payload: Any = None
    queue: str = DEFAULT_QUEUE
    tenant: str | None = None
    id: str | None = None
    """None: a random UUID."""
    priority: int | str = Priority.NORMAL
    """0 to 4, or the level's name: `"high"`."""
    run_at: datetime | None = None
    """Not before this. None: at once."""
    delay_seconds: Seconds | None = None
    """The same, from now."""
    tags: Iterable[str] | Mapping[str, Any] = ()
    key: str | None = None
    """The idempotency key: while it is held, submitting it again gives the same job."""
    key_hold_seconds: Seconds | None = None
    """Hold the key for so long, whether or not the job has ended. None: as the queue's policy says."""
    limit_key: str | None = None
    """What the per-key limits of its queue count it by."""
    after: After = ()
    """Jobs, or ids of jobs, stored or of the same batch, that must come before: one or several."""
    max_attempts: int | UnsetType | None = UNSET
    lease_seconds: Seconds | UnsetType | None = UNSET
    timeout_seconds: Seconds | UnsetType | None = UNSET
    lifetime_seconds: Seconds | UnsetType | None = UNSET
    backoff: retry.StoredBackoff | None = None
    correlation_id: str | None = None
    callback_url: str | None = None
    """Told of the job's end by a signed request, where the queue's policy delivers."""
    on_success: Sequence[JobSpec] = ()
    """Stored with this job; run once it has completed."""
    on_failure: Sequence[JobSpec] = ()
    """Stored with this job; run once it has ended in any other way."""


def checked(spec: JobSpec) -> JobSpec:
    """The same, with everything checked that no policy, payload or other job decides; in its plain form.

    For whoever keeps a spec to submit it later, again and again: what is wrong is told now.
    """
    return replace(
        spec,
        type=validation.check_name(spec.type, "type"),
        queue=validation.check_name(spec.queue, "queue"),
        tenant=None if spec.tenant is None else validation.check_name(spec.tenant, "tenant"),
        id=None if spec.id is None else validation.check_id(spec.id),
        priority=validation.check_priority(spec.priority),
        run_at=None if spec.run_at is None else validation.check_time(spec.run_at, "run_at"),
        delay_seconds=_delay(spec),
        tags=validation.check_tags(spec.tags),
        key=None if spec.key is None else validation.check_key(spec.key),
        key_hold_seconds=key_hold_seconds(spec),
        limit_key=_optional(spec.limit_key, "the limit key", validation.KEY_CHARS_MAX),
        after=dependencies(spec),
        max_attempts=_given(spec.max_attempts, lambda most: _attempts(most, None)),
        lease_seconds=_given(spec.lease_seconds, lambda s: _or(s, None, "lease_seconds")),
        timeout_seconds=_given(spec.timeout_seconds, lambda s: _or(s, None, "timeout_seconds")),
        lifetime_seconds=_given(spec.lifetime_seconds, lambda s: _or(s, None, "lifetime_seconds")),
        backoff=None if spec.backoff is None else retry.check(spec.backoff, "backoff"),
        correlation_id=check_correlation_id(spec.correlation_id),
        callback_url=_url(spec.callback_url),
        on_success=tuple(checked(one) for one in hooks(spec.on_success, "on_success")),
        on_failure=tuple(checked(one) for one in hooks(spec.on_failure, "on_failure")),
    )


def hooks(given: object, what: str) -> tuple[JobSpec, ...]:
    """The specs of `on_success` or `on_failure`."""
    several = tuple(given) if isinstance(given, list | tuple) else (None,)
    for one in several:
        if not isinstance(one, JobSpec):
            raise InvalidInput(
                f"{what} must be a list of JobSpecs, not {validation.told(given)}; {validation.UNCHANGED}"
            )
    return several


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
        timeout_seconds=timeout_of(spec, policy),
        expires_at=None if lifetime is None else now + timedelta(seconds=lifetime),
        backoff_json=None
        if spec.backoff is None
        else retry.encode(retry.check(spec.backoff, "backoff")),
        state=State.PENDING,
        run_at=_run_at(spec, now),
        updated_at=now,
    )


class Template:
    """What jobs of alike specs have in common, checked once: only id, payload and times are each one's own.

    `of` makes one of a spec that nobody can change any more; `fits` says whether another spec is alike.
    """

    __slots__ = ("_delay", "_job", "_lifetime", "_policy", "_run_at", "_spec")

    def __init__(self, spec: JobSpec, policy: Policy, job: Job) -> None:
        self._spec = spec
        self._policy = policy
        self._job = replace(job, payload_json=b"null")
        self._delay = timedelta(seconds=_delay(spec) or 0.0)
        self._run_at = None if spec.run_at is None else job.run_at
        self._lifetime = None if job.expires_at is None else job.expires_at - job.created_at

    @classmethod
    def of(cls, spec: JobSpec, policy: Policy, job: Job) -> Template | None:
        """The template for specs like this one, of which `job` is the draft; None if it stands alone."""
        stays = (
            _is_alone(spec)
            and all(type(getattr(spec, name)) in _NEVER_CHANGES for name in _ALIKE)
            and type(spec.tags) is tuple
            and all(type(tag) is str for tag in spec.tags)
        )
        return cls(replace(spec, payload=None), policy, job) if stays else None

    def fits(self, spec: JobSpec, policy: Policy) -> bool:
        """Whether the spec's job differs in no more than that. Quick, and certain only when it says yes.

        Its type and queue are plain text.
        """
        one = self._spec
        return (
            one.type == spec.type
            and one.queue == spec.queue
            and one.tags is spec.tags
            and one.priority is spec.priority
            and one.tenant is spec.tenant
            and one.limit_key is spec.limit_key
            and one.run_at is spec.run_at
            and one.delay_seconds is spec.delay_seconds
            and one.max_attempts is spec.max_attempts
            and one.lease_seconds is spec.lease_seconds
            and one.timeout_seconds is spec.timeout_seconds
            and one.lifetime_seconds is spec.lifetime_seconds
            and one.backoff is spec.backoff
            and one.correlation_id is spec.correlation_id
            and policy is self._policy
            and _is_alone(spec)
        )

    def at(self, now: datetime) -> Job:
        """The job of all that are submitted at this time, under the id and with the payload of another."""
        if self._job.created_at is not now:
            self._job = replace(
                self._job,
                created_at=now,
                updated_at=now,
                run_at=now + self._delay if self._run_at is None else self._run_at,
                expires_at=None if self._lifetime is None else now + self._lifetime,
            )
        return self._job

    def draft(self, spec: JobSpec, like: Job, fresh_ids: Iterator[str]) -> Job:
        """The spec's own job: as `draft` makes it."""
        policy = self._policy
        if spec.id is None and policy.ids is not IdSource.CLIENT:
            job_id = next(fresh_ids)
        else:
            job_id = _id(spec, policy)
        payload_json = codec.encode(spec.payload, limit=policy.payload_bytes_max)
        return replace(like, id=job_id, payload_json=payload_json)


_ALIKE = (
    *(
        "type",
        "queue",
        "tenant",
        "priority",
        "run_at",
        "delay_seconds",
        "limit_key",
        "max_attempts",
    ),
    *("lease_seconds", "timeout_seconds", "lifetime_seconds", "backoff", "correlation_id"),
)
"""What alike specs share, besides the tags: the very same objects, of classes that stay as they are."""
_NEVER_CHANGES = frozenset(
    {
        *(str, int, float, type(None), UnsetType, Priority, datetime, timedelta),
        *(retry.NoBackoff, retry.Constant, retry.Linear, retry.Exponential, retry.FullJitter),
    }
)
_NONE = ()


def _is_alone(spec: JobSpec) -> bool:
    """Nothing is stored, held or waited for but the job itself."""
    return (
        spec.after is _NONE
        and spec.on_success is _NONE
        and spec.on_failure is _NONE
        and spec.key is None
        and spec.key_hold_seconds is None
        and spec.callback_url is None
    )


def dependencies(spec: JobSpec) -> tuple[Dependency, ...]:
    """In order, one per job: AFTER where only an id is given."""
    after = spec.after
    if isinstance(after, str | Job | Dependency):
        after = (after,)
    elif isinstance(after, bytes | Mapping) or not isinstance(after, Iterable):
        raise InvalidInput(
            f"after is {validation.told(after)}; it must be a job, an id, or several of them; "
            f"{validation.UNCHANGED}"
        )
    found: dict[str, Dependency] = {}
    for item in after:
        one = item if isinstance(item, Dependency) else Dependency(item)  # type: ignore[arg-type]
        if not isinstance(one.kind, DependencyKind):
            raise InvalidInput(
                f"{validation.told(one.kind)} is not a kind of dependency; {validation.UNCHANGED}"
            )
        job_id = validation.check_id(_id_of(one.job_id))
        one = Dependency(job_id, one.kind)
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


def _id_of(job: object) -> object:
    return job.id if isinstance(job, Job) else job


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
    delay = _delay(spec)
    if delay is not None:
        return now + timedelta(seconds=delay)
    if spec.run_at is not None:
        return validation.check_time(spec.run_at, "run_at")
    return now


def _delay(spec: JobSpec) -> float | None:
    if spec.delay_seconds is None:
        return None
    if spec.run_at is not None:
        raise InvalidTime(f"give run_at or delay_seconds, not both; {validation.UNCHANGED}")
    return validation.check_seconds(spec.delay_seconds, "delay_seconds", zero=True)


def _given(value: Any, check: Callable[[Any], Any]) -> Any:
    """What was left out stays left out: the queue's policy says it."""
    return UNSET if value is UNSET else check(value)


def _attempts(given: int | UnsetType | None, default: int | None) -> int | None:
    if given is UNSET:
        return default
    return None if given is None else validation.check_limit(given, "max_attempts")


def _or(given: Seconds | UnsetType | None, default: float | None, what: str) -> float | None:
    if given is UNSET:
        return default
    return None if given is None else validation.check_seconds(given, what)


def timeout_of(spec: JobSpec, policy: Policy) -> float | None:
    """A job may ask for a shorter execution timeout than its queue's, never for a longer one."""
    asked = _or(spec.timeout_seconds, policy.timeout_seconds, "timeout_seconds")
    most = policy.timeout_seconds
    if most is not None and (asked is None or asked > most):
        raise InvalidLimit(
            f"timeout_seconds is {asked}, the limit of queue {spec.queue!r} is {most}: its policy says so, "
            f"Policy(timeout_seconds=…); {validation.UNCHANGED}"
        )
    return asked


def _optional(value: str | None, what: str, chars_max: int) -> str | None:
    return None if value is None else validation.check_text(value, what, chars_max)


def _url(value: str | None) -> str | None:
    return None if value is None else validation.check_url(value, "the callback url")
