"""Jobs as Redis holds them: a row that changes write, a body that they do not, and the rest.

The row is packed numbers and texts at fixed places, because scripts read it; lua/shared/rows.lua says the
same in Lua. Result, failure, progress, note, checkpoint and log stand apart, each only where there is one, so
that a change rewrites neither them nor the payload. What all jobs of a lane have in common, its names, stands
with the lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from struct import Struct
from typing import Any

import msgspec

from headrace.clock import from_us as moment_of
from headrace.clock import to_us as microseconds_of
from headrace.model import LEASED, TERMINAL, Failure, Job, State
from headrace.stores.base import KeyScope, Note, Rewrite
from headrace.stores.codec import CATEGORY_OF, Dialect, reader, writer
from headrace.stores.columns import JOB, LANE_KEY, Kind, named, own
from headrace.stores.redis.codes import STATE_BYTE, STATE_OF_BYTE
from headrace.stores.redis.lanes import Lane, read_lanes

NONE_US = -(2**53)
"""No time, in a packed number; rows.lua has the same."""
NO_END = "+inf"
"""The lease_until of a lease without end, in a sorted set."""

_MICROSECOND = timedelta(microseconds=1)
_FRONT = Struct(">IBQ")  # lane, flags, last event: the server's to write
HEAD = Struct(">BcIIIIqqqqI")  # up to the length of the tags
REST = Struct(">qqqqq")  # of jobs that ran or ended
_LENGTH = Struct(">H")
_LIMIT = Struct(">q")  # the execution timeout, at the end of a row; older rows do not have it
_NO_TEXT = _LENGTH.pack(0)
_SHORT, _FULL = 0, 1
_POSITION = {
    state: "finalized_at" if state in TERMINAL else "lease_until" if state in LEASED else "run_at"
    for state in State
}
_MORE = 1 | 2 | 4 | 8 | 16 | 64  # the flags of what stands apart; the others are the server's own

_encode = msgspec.msgpack.Encoder().encode
_encode_json = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode
_decode_failure = msgspec.json.Decoder(tuple[str, str, str | None]).decode

# The jobs of one step share most of their times, and a lookup is much cheaper than arithmetic on datetimes.
from_us = lru_cache(maxsize=4096)(moment_of)
to_us = lru_cache(maxsize=4096)(microseconds_of)


def us_or_none(moment: datetime | None) -> int:
    return NONE_US if moment is None else to_us(moment)


def score(moment: datetime | None) -> str | int:
    """A lease_until as a score."""
    return NO_END if moment is None else to_us(moment)


@lru_cache(maxsize=4096)
def length_us(seconds: float) -> int:
    """A duration as `timedelta` rounds it."""
    return timedelta(seconds=seconds) // _MICROSECOND


def position_us(job: Job) -> int:
    """Where the job stands among those of its state: lua/shared/indexes.lua says what by."""
    return us_or_none(getattr(job, _POSITION[job.state]))


def handle_of(seq: int) -> str:
    """How scripts call a job: its seq, so padded that order as text is order as number."""
    return f"{seq:014d}"


def pack_scope(scope: KeyScope) -> str:
    return _encode_json((scope.tenant, scope.queue, scope.type, scope.key)).decode()


def _time_or_none(us: int | None) -> datetime | None:
    return None if us is None or us == NONE_US else from_us(us)


_PACKED = Dialect(
    reads={Kind.STATE: STATE_OF_BYTE, Kind.TIME: from_us},
    reads_null={Kind.TIME: _time_or_none},
    writes={Kind.STATE: STATE_BYTE, Kind.TIME: to_us},
    writes_null={Kind.TIME: us_or_none},
)
_MESSAGE_PACK = Dialect(writes={Kind.TIME: to_us})

_HEAD_COLUMNS = (
    own("shape", Kind.INT),
    *named(JOB, "state", "version", "attempt", "failures", "losses"),
    *named(JOB, "run_at", "updated_at", "created_at"),
    own("lease_us", Kind.INT),
    own("tags_bytes", Kind.INT),
)
_REST_COLUMNS = named(
    JOB, "assigned_at", "scheduled_at", "started_at", "last_failed_at", "finalized_at"
)
_OTHER_COLUMNS = named(
    JOB, "lane", "seq", "id", "parent_id", "key", "tags", "token", "assignee", "lease_until"
)
"""Texts of any length, and what does not stand in the row at all."""
_BODY_COLUMNS = named(
    JOB,
    *("payload", "previous_id", "correlation_id", "callback_url", "depth", "max_attempts"),
    *("lease_seconds", "timeout_seconds", "expires_at", "backoff"),
)
"""The payload is the first: rows.lua finds it there, and an update writes anew what stands behind it."""

_head_of = writer(_HEAD_COLUMNS, dialect=_PACKED, given=["shape", "lease_us", "tags_bytes"])
_rest_of = writer(_REST_COLUMNS, dialect=_PACKED)
_body_of = writer(_BODY_COLUMNS, dialect=_MESSAGE_PACK)
_job_of = reader(Job, _OTHER_COLUMNS, _HEAD_COLUMNS, _REST_COLUMNS, _BODY_COLUMNS, dialect=_PACKED)
_NO_REST = (NONE_US,) * len(_REST_COLUMNS)
_BODY_LIST = bytes((0x90 + len(_BODY_COLUMNS),))  # how MessagePack begins a list of fewer than 16
_TYPE_OF = {Kind.INT: int, Kind.FLOAT: float, Kind.TEXT: str, Kind.JSON: bytes, Kind.TIME: int}
_decode_body = msgspec.msgpack.Decoder(
    tuple[  # type: ignore[misc]  # made of the list above
        tuple(_TYPE_OF[c.kind] | None if c.nullable else _TYPE_OF[c.kind] for c in _BODY_COLUMNS)
    ]
).decode


def pack_row(job: Job) -> bytes:
    """What a change writes, without the front that the server puts before it."""
    tags = "\n".join(job.tags).encode() if job.tags else b""
    scope = b""
    if job.key is not None:
        scope = pack_scope(KeyScope(job.tenant, job.queue, job.type, job.key)).encode()
    seconds = job.lease_seconds
    lease_us = NONE_US if seconds is None else length_us(seconds)
    timeout = job.timeout_seconds
    limit = b"" if timeout is None else _LIMIT.pack(length_us(timeout))
    rest = _rest_of(job)
    if rest == _NO_REST and job.token is None and job.assignee is None:
        head = HEAD.pack(*_head_of(job, _SHORT, lease_us, len(tags)))
        return b"".join((head, tags, _packed_text(scope), limit))
    return b"".join(
        (
            HEAD.pack(*_head_of(job, _FULL, lease_us, len(tags))),
            tags,
            _packed_text(scope),
            REST.pack(*rest),
            _packed_text((job.token or "").encode()),
            _packed_text((job.assignee or "").encode()),
            limit,
        )
    )


def _packed_text(text: bytes) -> bytes:
    return _LENGTH.pack(len(text)) + text if text else _NO_TEXT


common_fields = attrgetter(
    *(
        column.field
        for column in (*LANE_KEY, *_HEAD_COLUMNS, *_REST_COLUMNS, *_OTHER_COLUMNS, *_BODY_COLUMNS)
        if column.field and column.name not in ("id", "seq", "payload")
    )
)
"""All that `pack_row` and `pack_behind_payload` pack, and the lane."""


def pack_body(job: Job, behind_payload: bytes) -> bytes:
    """What no change writes: the job's id, the id of the job that spawned it, and the rest."""
    names = _packed_text(job.id.encode()) + _packed_text((job.parent_id or "").encode())
    return b"".join((names, _BODY_LIST, _encode(job.payload_json), behind_payload))


def pack_behind_payload(job: Job) -> bytes:
    """What stands in a body after the payload: an update writes that anew."""
    return _encode(_body_of(job)[1:])[1:]  # without the byte that says how many


def pack_payload(payload_json: bytes) -> bytes:
    """A payload as it stands in a body."""
    return _encode(payload_json)


def pack_failure(failure: Failure) -> bytes:
    return _encode_json((failure.message, failure.category, failure.code))


def _pack_progress(progress: float) -> bytes:
    return repr(float(progress)).encode()


_APART = {
    "r": ("result_json", bytes),
    "f": ("failure", pack_failure),
    "p": ("progress", _pack_progress),
    "n": ("progress_note", str.encode),
    "c": ("checkpoint_json", bytes),
    "l": ("log_json", bytes),
}
"""What stands apart, by its letter."""


def has_more(job: Job) -> bool:
    """Of new jobs few have, and to ask each of them for it all would take long."""
    return not (
        job.result_json is None
        and job.failure is None
        and job.progress is None
        and job.progress_note is None
        and job.checkpoint_json is None
        and job.log_json is None
    )


def more_of(item: Job | Note | Rewrite) -> Iterator[tuple[str, bytes]]:
    """What of it stands apart: letter and value."""
    for letter, (field, pack) in _APART.items():
        value = getattr(item, field, None)
        if value is not None:
            yield letter, pack(value)  # type: ignore[operator]  # each takes what its field is


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
    head = HEAD.unpack_from(row, _FRONT.size)
    at = _FRONT.size + HEAD.size
    tags, at = row[at : at + head[-1]], at + head[-1]
    scope, at = _read_text(row, at)
    rest, token, assignee = _NO_REST, b"", b""
    if head[0] == _FULL:
        rest = REST.unpack_from(row, at)
        token, at = _read_text(row, at + REST.size)
        assignee, _ = _read_text(row, at)
    name, at = _read_text(body, 0)
    parent, at = _read_text(body, at)
    other = (
        lane,
        int(handle),
        name.decode(),
        parent.decode() or None,
        _decode_json(scope)[3] if scope else None,
        tuple(tags.decode().split("\n")) if tags else (),
        token.decode() or None,
        assignee.decode() or None,
        # Not int() alone: a server may write a large score with an exponent.
        None if lease in (b"", b"inf") else int(float(lease)),
    )
    job: Job = _job_of(other, head, rest, _decode_body(memoryview(body)[at:]), lanes.__getitem__)
    return _with_more(job, handle, more) if flags & _MORE else job


def _with_more(job: Job, handle: bytes, more: dict[bytes, bytes]) -> Job:
    failure = more.get(handle + b"f")
    progress = more.get(handle + b"p")
    note = more.get(handle + b"n")
    said = None
    if failure is not None:
        message, category, code = _decode_failure(failure)
        said = Failure(message, CATEGORY_OF[category], code)
    return msgspec.structs.replace(
        job,
        failure=said,
        result_json=more.get(handle + b"r"),
        progress=None if progress is None else float(progress),
        progress_note=None if note is None else note.decode(),
        checkpoint_json=more.get(handle + b"c"),
        log_json=more.get(handle + b"l"),
    )


def _read_text(packed: bytes, at: int) -> tuple[bytes, int]:
    (length,) = _LENGTH.unpack_from(packed, at)
    start = at + _LENGTH.size
    return packed[start : start + length], start + length
