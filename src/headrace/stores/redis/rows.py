"""Jobs as Redis holds them: a row that changes write, a body that they do not, and the rest.

The row is packed numbers and texts at fixed places, because scripts read it; lua/shared/rows.lua
says the same in Lua. Result, failure, progress, note, checkpoint and log stand apart, each only where
there is one, so that a change rewrites neither them nor the payload. What all jobs of a lane have in
common, its names, stands with the lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from struct import Struct
from typing import Any

import msgspec

from headrace.clock import from_us as moment_of
from headrace.clock import to_us
from headrace.model import Category, Failure, Job
from headrace.stores.base import KeyScope
from headrace.stores.redis.codes import STATE_BYTE, STATE_OF_BYTE
from headrace.stores.redis.lanes import Lane, read_lanes

NONE_US = -(2**53)
"""No time, in a packed number; rows.lua has the same."""
NO_END = "+inf"
"""The lease_until of a lease without end, in a sorted set."""

_MICROSECOND = timedelta(microseconds=1)
_FRONT = Struct(">IBQ")  # lane, flags, last event: the server's to write
_HEAD = Struct(">BcIIIIqqqqI")  # up to the length of the tags
_REST = Struct(">qqqqq")  # of jobs that ran or ended
_LENGTH = Struct(">H")
_LIMIT = Struct(">q")  # the execution timeout, at the end of a row; older rows do not have it
_SHORT, _FULL = 0, 1
_MORE = 1 | 2 | 4 | 8 | 16 | 64  # the flags of what stands apart; the others are the server's own

_encode = msgspec.msgpack.Encoder().encode
_encode_json = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode
_decode_body = msgspec.msgpack.Decoder(
    tuple[
        bytes,
        str | None,
        str | None,
        str | None,
        int,
        int | None,
        float | None,
        float | None,
        int | None,
        bytes | None,
    ]
).decode
_decode_failure = msgspec.json.Decoder(tuple[str, str, str | None]).decode
_CATEGORY_OF = {str(category): category for category in Category}


# The jobs of one claim share most of their times, and a lookup is much cheaper than a new datetime.
from_us = lru_cache(maxsize=4096)(moment_of)


def us_or_none(moment: datetime | None) -> int:
    return NONE_US if moment is None else to_us(moment)


def score(moment: datetime | None) -> str | int:
    """A lease_until as a score."""
    return NO_END if moment is None else to_us(moment)


def length_us(seconds: float) -> int:
    """A duration as `timedelta` rounds it."""
    return timedelta(seconds=seconds) // _MICROSECOND


def handle_of(seq: int) -> str:
    """How scripts call a job: its seq, so padded that order as text is order as number."""
    return f"{seq:014d}"


def pack_scope(scope: KeyScope) -> str:
    return _encode_json((scope.tenant, scope.queue, scope.type, scope.key)).decode()


def pack_row(job: Job) -> bytes:
    """What a change writes, without the front that the server puts before it."""
    tags = "\n".join(job.tags).encode() if job.tags else b""
    scope = b""
    if job.key is not None:
        scope = pack_scope(KeyScope(job.tenant, job.queue, job.type, job.key)).encode()
    ran = job.assigned_at is not None or job.finalized_at is not None or _has_rest(job)
    seconds = job.lease_seconds
    row = _HEAD.pack(
        _FULL if ran else _SHORT,
        STATE_BYTE[job.state],
        job.version,
        job.attempt,
        job.failures,
        job.losses,
        to_us(job.run_at),
        to_us(job.updated_at),
        to_us(job.created_at),
        NONE_US if seconds is None else length_us(seconds),
        len(tags),
    )
    parts = [row, tags, _LENGTH.pack(len(scope)), scope]
    if ran:
        token, assignee = (job.token or "").encode(), (job.assignee or "").encode()
        parts += [
            _REST.pack(
                us_or_none(job.assigned_at),
                us_or_none(job.scheduled_at),
                us_or_none(job.started_at),
                us_or_none(job.last_failed_at),
                us_or_none(job.finalized_at),
            ),
            _LENGTH.pack(len(token)),
            token,
            _LENGTH.pack(len(assignee)),
            assignee,
        ]
    if job.timeout_seconds is not None:
        parts.append(_LIMIT.pack(length_us(job.timeout_seconds)))
    return b"".join(parts)


def _has_rest(job: Job) -> bool:
    rest = (job.scheduled_at, job.started_at, job.last_failed_at, job.token, job.assignee)
    return any(value is not None for value in rest)


def pack_body(job: Job) -> bytes:
    """What no change writes. The payload comes first of the packed: rows.lua finds it there."""
    name, parent = job.id.encode(), (job.parent_id or "").encode()
    return b"".join(
        (
            _LENGTH.pack(len(name)),
            name,
            _LENGTH.pack(len(parent)),
            parent,
            _encode((job.payload_json, *_behind_payload(job))),
        )
    )


def pack_behind_payload(job: Job) -> bytes:
    """What stands in a body after the payload: an update writes that anew."""
    return b"".join(map(_encode, _behind_payload(job)))


def _behind_payload(job: Job) -> tuple[Any, ...]:
    return (
        job.previous_id,
        job.correlation_id,
        job.callback_url,
        job.depth,
        job.max_attempts,
        job.lease_seconds,
        job.timeout_seconds,
        None if job.expires_at is None else to_us(job.expires_at),
        job.backoff_json,
    )


def pack_payload(payload_json: bytes) -> bytes:
    """A payload as it stands in a body."""
    return _encode(payload_json)


def pack_failure(failure: Failure) -> bytes:
    return _encode_json((failure.message, failure.category, failure.code))


def pack_progress(progress: float) -> str:
    return repr(float(progress))


def read_jobs(reply: Sequence[Any]) -> list[Job]:
    """The jobs of a reply, in its order; lua/shared/jobs_reply.lua says what it is made of."""
    lanes = read_lanes(reply[0])
    flat = reply[1]
    more = dict(zip(reply[2][::2], reply[2][1::2], strict=True))
    return [
        _read_job(parts, lanes, more)
        for parts in zip(flat[::4], flat[1::4], flat[2::4], flat[3::4], strict=True)
    ]


def _read_job(
    parts: tuple[bytes, bytes, bytes, bytes], lanes: dict[int, Lane], more: dict[bytes, bytes]
) -> Job:
    handle, row, body, lease = parts
    lane, flags, _ = _FRONT.unpack_from(row)
    (
        shape,
        state,
        version,
        attempt,
        failures,
        losses,
        run_at,
        updated_at,
        created_at,
        _,
        tags_length,
    ) = _HEAD.unpack_from(row, _FRONT.size)
    at = _FRONT.size + _HEAD.size
    tags, at = row[at : at + tags_length], at + tags_length
    scope, at = _read_text(row, at)
    assigned_at = scheduled_at = started_at = last_failed_at = finalized_at = NONE_US
    token = assignee = b""
    if shape == _FULL:
        assigned_at, scheduled_at, started_at, last_failed_at, finalized_at = _REST.unpack_from(
            row, at
        )
        token, at = _read_text(row, at + _REST.size)
        assignee, at = _read_text(row, at)
    id_, at = _read_text(body, 0)
    parent_id, at = _read_text(body, at)
    (
        payload,
        previous_id,
        correlation_id,
        callback_url,
        depth,
        max_attempts,
        lease_seconds,
        timeout_seconds,
        expires_at,
        backoff,
    ) = _decode_body(memoryview(body)[at:])
    names = lanes[lane]
    job = Job(
        id=id_.decode(),
        tenant=names.tenant,
        queue=names.queue,
        type=names.type,
        tags=tuple(tags.decode().split("\n")) if tags else (),
        payload_json=payload,
        priority=names.priority,
        created_at=from_us(created_at),
        key=_decode_json(scope)[3] if scope else None,
        previous_id=previous_id,
        parent_id=parent_id.decode() if parent_id else None,
        correlation_id=correlation_id,
        callback_url=callback_url,
        limit_key=names.limit_key,
        depth=depth,
        seq=int(handle),
        max_attempts=max_attempts,
        lease_seconds=lease_seconds,
        timeout_seconds=timeout_seconds,
        expires_at=None if expires_at is None else from_us(expires_at),
        backoff_json=backoff,
        state=STATE_OF_BYTE[state],
        version=version,
        run_at=from_us(run_at),
        updated_at=from_us(updated_at),
        attempt=attempt,
        failures=failures,
        losses=losses,
        token=token.decode() if token else None,
        lease_until=_lease_until(lease),
        assignee=assignee.decode() if assignee else None,
        assigned_at=_time(assigned_at),
        scheduled_at=_time(scheduled_at),
        started_at=_time(started_at),
        last_failed_at=_time(last_failed_at),
        finalized_at=_time(finalized_at),
    )
    return _with_more(job, handle, more) if flags & _MORE else job


def _with_more(job: Job, handle: bytes, more: dict[bytes, bytes]) -> Job:
    failure = more.get(handle + b"f")
    progress = more.get(handle + b"p")
    note = more.get(handle + b"n")
    said = None
    if failure is not None:
        message, category, code = _decode_failure(failure)
        said = Failure(message, _CATEGORY_OF[category], code)
    return msgspec.structs.replace(
        job,
        failure=said,
        result_json=more.get(handle + b"r"),
        progress=None if progress is None else float(progress),
        progress_note=None if note is None else note.decode(),
        checkpoint_json=more.get(handle + b"c"),
        log_json=more.get(handle + b"l"),
    )


def more_of(job: Job) -> Iterable[tuple[str, str]]:
    """What of a new job stands apart: letter and value. Rare: a job is born without any of it."""
    if job.result_json is not None:
        yield "r", job.result_json.decode()
    if job.failure is not None:
        yield "f", pack_failure(job.failure).decode()
    if job.progress is not None:
        yield "p", pack_progress(job.progress)
    if job.progress_note is not None:
        yield "n", job.progress_note
    if job.checkpoint_json is not None:
        yield "c", job.checkpoint_json.decode()
    if job.log_json is not None:
        yield "l", job.log_json.decode()


def _read_text(packed: bytes, at: int) -> tuple[bytes, int]:
    (length,) = _LENGTH.unpack_from(packed, at)
    start = at + _LENGTH.size
    return packed[start : start + length], start + length


def _time(us: int) -> datetime | None:
    return None if us == NONE_US else from_us(us)


def _lease_until(lease: bytes) -> datetime | None:
    # Not int(): a server may write a large score with an exponent.
    return None if lease in (b"", b"inf") else from_us(int(float(lease)))
