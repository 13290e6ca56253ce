"""Jobs to be, as they come over HTTP. Payloads are carried as they are written, digit by digit."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from headrace import codec, duration, envelope, retry, spec, validation
from headrace.errors import InvalidInput, InvalidPayload, InvalidRequest
from headrace.model import DEFAULT_QUEUE, Dependency, DependencyKind
from headrace.redaction import Redacted
from headrace.spec import JobSpec

NULL = msgspec.Raw(b"null")
SecondsBody = float | str
"""Seconds, or text: `90s`, `5m`, `2h`."""


class DependencyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The job waits for this one."""

    job_id: str
    kind: DependencyKind = DependencyKind.AFTER


class JobBody(Redacted, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A job to be. What is left out comes from the policy of its queue."""

    type: str
    payload: msgspec.Raw = msgspec.field(default_factory=lambda: NULL)
    queue: str = DEFAULT_QUEUE
    tenant: str | None = None
    """Only a token that acts for every tenant may name another than its own."""
    id: str | None = None
    priority: int | str = 2
    run_at: datetime | None = None
    delay_seconds: SecondsBody | None = None
    tags: tuple[str, ...] | dict[str, str | int | float | bool] = ()
    key: str | None = None
    key_hold_seconds: SecondsBody | None = None
    limit_key: str | None = None
    after: tuple[str | DependencyBody, ...] = ()
    max_attempts: int | UnsetType | None = UNSET
    lease_seconds: SecondsBody | UnsetType | None = UNSET
    timeout_seconds: SecondsBody | UnsetType | None = UNSET
    lifetime_seconds: SecondsBody | UnsetType | None = UNSET
    backoff: retry.StoredBackoff | None = None
    correlation_id: str | None = None
    callback_url: str | None = None
    on_success: tuple[JobBody, ...] = ()
    on_failure: tuple[JobBody, ...] = ()


_SAME = tuple(
    name
    for name in JobBody.__struct_fields__
    if name not in ("payload", "tags", "after", "on_success", "on_failure")
)
_DURATIONS = (
    "delay_seconds",
    "key_hold_seconds",
    "lease_seconds",
    "timeout_seconds",
    "lifetime_seconds",
)


def spec_of(body: JobBody) -> JobSpec:
    """What the manager is to submit."""
    return JobSpec(
        **{name: getattr(body, name) for name in _SAME},
        payload=content_of(body.payload, "payload"),
        tags=body.tags,
        after=tuple(
            one if isinstance(one, str) else Dependency(one.job_id, one.kind) for one in body.after
        ),
        on_success=tuple(spec_of(one) for one in body.on_success),
        on_failure=tuple(spec_of(one) for one in body.on_failure),
    )


def body_of(given: JobSpec) -> JobBody:
    """What a client sends. Raises the InvalidInput that says what is wrong with it."""
    if not isinstance(given, JobSpec):
        raise InvalidInput(f"{validation.told(given)} is not a JobSpec; {validation.UNCHANGED}")
    one = spec.checked(given)
    return JobBody(
        **{name: _plain(name, getattr(one, name)) for name in _SAME},
        payload=raw_of(given.payload, "payload"),
        tags=tuple(one.tags),
        after=tuple(DependencyBody(each.job_id, each.kind) for each in spec.dependencies(one)),
        on_success=tuple(body_of(each) for each in one.on_success),
        on_failure=tuple(body_of(each) for each in one.on_failure),
    )


def _plain(name: str, value: Any) -> Any:
    return value if name not in _DURATIONS or value in (None, UNSET) else duration.seconds_of(value)


def raw_of(value: Any, what: str) -> msgspec.Raw:
    """A payload, result or checkpoint on its way out."""
    return msgspec.Raw(codec.encode(value, what=what, limit=codec.PAYLOAD_BYTES_MAX))


def content_of(raw: msgspec.Raw, what: str) -> Any:
    """A payload, result or checkpoint that came in, for the manager.

    It is stored without the blanks between its words, and otherwise as it was written: numbers of any size
    come back digit by digit. What would pass for encrypted contents is refused.
    """
    try:
        value = msgspec.json.decode(raw)
        written = msgspec.json.format(bytes(raw), indent=-1)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"the {what} is not JSON: {error}; nothing was stored") from error
    if isinstance(value, dict) and len(value) == 1:
        if envelope.SEALED_KEY in value:
            raise InvalidPayload(
                f"the {what} uses the reserved key {envelope.SEALED_KEY!r}; nothing was stored"
            )
        if codec.BYTES_KEY in value:
            return codec.decode(msgspec.json.encode(value))
    return codec.Encoded(written)
