"""Schedules as JSON, which is how a store keeps them. Pure."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, UnsetType

from headrace import codec, retry, validation
from headrace.errors import InvalidInput, InvalidLimit, StoreCorrupt
from headrace.model import DEFAULT_QUEUE, Priority
from headrace.redaction import Redacted
from headrace.schedules.schedule import PAYLOAD_BYTES_MAX, Misfire, Schedule
from headrace.schedules.when import When
from headrace.spec import JobSpec

_HOOKS = ("on_success", "on_failure")


class _Template(Redacted, frozen=True, kw_only=True, omit_defaults=True):
    """What a description says of the jobs of every tick, under the same names."""

    type: str
    payload: msgspec.Raw = msgspec.Raw(b"null")
    queue: str = DEFAULT_QUEUE
    priority: int = Priority.NORMAL
    tags: tuple[str, ...] = ()
    limit_key: str | None = None
    max_attempts: int | UnsetType | None = UNSET
    lease_seconds: float | UnsetType | None = UNSET
    timeout_seconds: float | UnsetType | None = UNSET
    lifetime_seconds: float | UnsetType | None = UNSET
    backoff: retry.StoredBackoff | None = None
    correlation_id: str | None = None
    callback_url: str | None = None
    on_success: tuple[_Template, ...] = ()
    on_failure: tuple[_Template, ...] = ()


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as JSON."""

    name: str
    tenant: str
    when: When
    job: _Template
    misfire: Misfire
    grace_seconds: float
    paused: bool
    created_at: datetime
    done_until: datetime
    last_tick: datetime | None


_decoder = msgspec.json.Decoder(_Stored)
_job_decoder = msgspec.json.Decoder(_Template)


def encode(schedule: Schedule) -> bytes:
    fields = {name: getattr(schedule, name) for name in _Stored.__struct_fields__}
    return msgspec.json.encode(_Stored(**fields | {"job": _template(schedule.job)}))


def encode_job(job: JobSpec) -> bytes:
    """A description as it is stored: what is left out of it has its default."""
    return msgspec.json.encode(_template(job))


def decode_job(encoded: bytes) -> JobSpec:
    """What `encode_job` was given. Raises InvalidInput."""
    try:
        return _spec(_job_decoder.decode(encoded))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the job of a schedule cannot be read: {error}") from error


def decode(encoded: bytes, name: str) -> Schedule:
    """What `encode` was given.

    Raises StoreCorrupt, which tells the name, or InvalidSchedule for a zone that this host does not know.
    """
    try:
        stored = _decoder.decode(encoded)
    except (msgspec.DecodeError, UnicodeDecodeError, InvalidLimit) as error:
        raise StoreCorrupt(
            f"schedule {name} cannot be read: {error}; it was left as it is: "
            "remove it, or let the version of Headrace that wrote it read it"
        ) from error
    fields = {name: getattr(stored, name) for name in _Stored.__struct_fields__}
    return Schedule(**fields | {"job": _spec(stored.job)})


def _template(job: JobSpec) -> _Template:
    fields = {name: getattr(job, name) for name in _Template.__struct_fields__}
    fields["priority"] = Priority(validation.check_priority(job.priority))
    fields["payload"] = msgspec.Raw(codec.encode(job.payload, limit=PAYLOAD_BYTES_MAX))
    for hooks in _HOOKS:
        fields[hooks] = tuple(map(_template, fields[hooks]))
    return _Template(**fields)


def _spec(template: _Template) -> JobSpec:
    fields = {name: getattr(template, name) for name in _Template.__struct_fields__}
    fields["payload"] = codec.decode(bytes(template.payload))
    for hooks in _HOOKS:
        fields[hooks] = tuple(map(_spec, fields[hooks]))
    return JobSpec(**fields)


def is_same(one: Schedule, other: Schedule) -> bool:
    """Whether both submit the same at the same times, by the same rules."""
    return _definition(one) == _definition(other)


def _definition(schedule: Schedule) -> bytes:
    """The part that its owner wrote, numbers as they are stored, the names of every object in order."""
    stored = _decoder.decode(encode(schedule))
    rules = msgspec.json.encode((stored.when, stored.misfire, stored.grace_seconds, stored.job))
    return msgspec.json.encode(msgspec.json.decode(rules), order="sorted")
