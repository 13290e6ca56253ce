"""What a client submits: every field of the model, and how it becomes a Headrace job."""

from __future__ import annotations

import enum
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from headrace import model, validation
from headrace.contracts.duration import Duration, seconds
from headrace.contracts.job_model.configuration import RetryConfig, TimeoutConfig
from headrace.errors import DependencyNotFound, InvalidInput, InvalidName
from headrace.input_checks import looked_into_later
from headrace.model import Priority, new_id
from headrace.policy import Policy
from headrace.redaction import Redacted
from headrace.retry import Custom, StoredBackoff
from headrace.spec import JobSpec

_T = TypeVar("_T")

TAG_SEPARATOR = "="
"""A map entry is kept as the tag `key=value`, so no key may hold the separator."""


Id = str | uuid.UUID
"""A job id as a caller may give it; what comes back is always text."""


def id_text(value: Id) -> str:
    """The id as it is stored; whether it is one is for its user to check."""
    return str(value) if isinstance(value, uuid.UUID) else value


class DependencyType(enum.StrEnum):
    """How a job waits for another."""

    AFTER = "AFTER"
    AFTER_ANY = "AFTER_ANY"
    CHAIN = "CHAIN"
    FAN_OUT = "FAN_OUT"
    FAN_IN = "FAN_IN"


class Dependency(msgspec.Struct, frozen=True):
    """This job waits for another: a stored job by id or, within a batch, a job by its position."""

    job_id: Id | int
    type: DependencyType = DependencyType.AFTER


@looked_into_later
class JobRequest(Redacted, frozen=True):
    """A job to be. The client names no id: the system assigns it."""

    type: str
    payload: Any = None
    priority: int = Priority.NORMAL
    tags: Mapping[str, Any] | Iterable[str] = {}
    delay: Duration | None = None
    run_at: datetime | None = None
    idempotency_key: str | None = None
    dependencies: Iterable[Dependency | Id | int] = ()
    """AFTER where only an id or a position is given."""
    retry: RetryConfig | None = None
    """None: the queue's."""
    timeout: TimeoutConfig | None = None
    """None: the queue's."""
    correlation_id: str | None = None
    callback_url: str | None = None


def listed(items: Iterable[_T], what: str) -> list[_T]:
    """The items of a real list: one text, or one item that is not in a list, is never what was meant."""
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise InvalidInput(
            f"{what} must be a list, not {validation.told(items)}; {validation.UNCHANGED}"
        )
    return list(items)


def check_request(request: object) -> None:
    if not isinstance(request, JobRequest):
        raise InvalidInput(
            f"a job is {validation.told(request)}, not a JobRequest; {validation.UNCHANGED}"
        )
    for name, kind in (("retry", RetryConfig), ("timeout", TimeoutConfig)):
        value = getattr(request, name)
        if value is not None and not isinstance(value, kind):
            raise InvalidInput(
                f"{name} is {validation.told(value)}, not a {kind.__name__}; {validation.UNCHANGED}"
            )


def specs_of(requests: Sequence[JobRequest], policy: Policy) -> list[JobSpec]:
    """The jobs of a batch, each under its new id, so that they can name each other by position."""
    ids = [new_id() for _ in requests]
    return [_spec(request, ids, position, policy) for position, request in enumerate(requests)]


def _spec(request: JobRequest, ids: Sequence[str], position: int, policy: Policy) -> JobSpec:
    check_request(request)
    timeout = request.timeout
    return JobSpec(
        id=ids[position],
        type=request.type,
        payload=request.payload,
        priority=request.priority,
        tags=tags_of(request.tags),
        delay_seconds=None if request.delay is None else seconds(request.delay),
        run_at=request.run_at,
        key=request.idempotency_key,
        after=[_dependency(item, ids) for item in listed(request.dependencies, "dependencies")],
        max_attempts=UNSET if request.retry is None else request.retry.max_attempts,
        backoff=_backoff(request.retry, policy),
        timeout_seconds=UNSET if timeout is None else _seconds(timeout.execution),
        lease_seconds=UNSET if timeout is None else _seconds(timeout.visibility),
        lifetime_seconds=UNSET if timeout is None else _seconds(timeout.lifetime),
        correlation_id=request.correlation_id,
        callback_url=request.callback_url,
    )


def _seconds(value: Duration | None) -> float | UnsetType | None:
    return None if value is None else seconds(value)


def _backoff(config: RetryConfig | None, policy: Policy) -> StoredBackoff | None:
    """None: the queue's own. A function is code, which no store holds: what it says goes with the job.

    So the job waits as its submitter meant in every process that runs it, also where the function is the
    queue's own and that process knows nothing of it.
    """
    backoff = policy.backoff if config is None else config.backoff
    most = policy.max_attempts if config is None else config.max_attempts
    if isinstance(backoff, Custom):
        return backoff.table(most)
    return None if config is None else backoff


def tags_of(tags: Mapping[str, Any] | Iterable[str]) -> Mapping[str, Any] | Iterable[str]:
    if isinstance(tags, Mapping):
        for key in tags:
            if isinstance(key, str) and TAG_SEPARATOR in key:
                raise InvalidName(
                    f"the tag key {validation.told(key)} holds {TAG_SEPARATOR!r}; {validation.UNCHANGED}"
                )
    return tags


def _dependency(item: Dependency | Id | int, ids: Sequence[str]) -> model.Dependency:
    one = item if isinstance(item, Dependency) else Dependency(item)
    try:
        kind = model.DependencyKind[DependencyType(one.type).name]
    except ValueError:
        names = ", ".join(DependencyType)
        raise InvalidInput(
            f"the dependency type {validation.told(one.type)} is not one of {names}; {validation.UNCHANGED}"
        ) from None
    if not isinstance(one.job_id, int):
        return model.Dependency(id_text(one.job_id), kind)
    if not 0 <= one.job_id < len(ids):
        raise DependencyNotFound(
            f"the batch has {len(ids)} jobs, none at position {one.job_id}; {validation.UNCHANGED}"
        )
    return model.Dependency(ids[one.job_id], kind)
