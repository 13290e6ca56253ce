"""The words of Headrace as values: job, state, lease, event, and what they are made of.

Everything here is immutable and free of I/O. Structs rather than dataclasses: a job has some forty
fields and is copied on every change (docs/adr/0001).
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic

import msgspec

from headrace import codec
from headrace.envelope import Seals, is_sealed
from headrace.job_words import ELSEWHERE, Elsewhere
from headrace.redaction import Redacted

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    R_co = TypeVar("R_co", default=Any, covariant=True)
else:
    from typing import TypeVar

    R_co = TypeVar("R_co", covariant=True)

DEFAULT_QUEUE = "default"
DEFAULT_TENANT = "default"


class State(enum.StrEnum):
    """The eleven stored states. What is derived from the clock (ready, delayed) is never stored."""

    BLOCKED = "blocked"
    """Waits for other jobs."""
    PENDING = "pending"
    """Claimable once `run_at` is due."""
    RUNNING = "running"
    """Leased to one worker."""
    CANCELLING = "cancelling"
    """Leased; cancellation was asked and the worker has not answered yet."""
    RETRYING = "retrying"
    """Failed, snoozed or released; claimable once `run_at` is due."""
    LOST = "lost"
    """Its worker vanished; claimable at once, the outcome of the last attempt is unknown."""
    COMPLETED = "completed"
    """Succeeded."""
    FAILED = "failed"
    """Failed for good."""
    DEAD = "dead"
    """Attempts or lifetime exhausted: the dead letters."""
    CANCELLED = "cancelled"
    """Cancelled: it never ran, or it was stopped."""
    ABANDONED = "abandoned"
    """Cancelled, but the worker never answered: the outcome is unknown."""


CLAIMABLE = frozenset({State.PENDING, State.RETRYING, State.LOST})
LEASED = frozenset({State.RUNNING, State.CANCELLING})
TERMINAL = frozenset({State.COMPLETED, State.FAILED, State.DEAD, State.CANCELLED, State.ABANDONED})


class Priority(enum.IntEnum):
    """Smaller runs first."""

    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3
    BULK = 4


class Category(enum.StrEnum):
    """Why an attempt, or a job, did not succeed. Exactly one applies."""

    TEMPORARY = "temporary"
    PERMANENT = "permanent"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    SYSTEM = "system"


class DependencyKind(enum.StrEnum):
    """How a job waits for another. All but AFTER_ANY need the other job to complete."""

    AFTER = "after"
    AFTER_ANY = "after_any"
    CHAIN = "chain"
    FAN_OUT = "fan_out"
    FAN_IN = "fan_in"
    """As AFTER, and also waits for whatever the other job spawns while it runs."""


_NONE_KEPT = (None, None, None)


class EventKind(enum.StrEnum):
    """What an event says happened. One kind per way a job can change."""

    ENQUEUED = "enqueued"
    UNBLOCKED = "unblocked"
    LEASED = "leased"
    COMPLETED = "completed"
    FAILED = "failed"
    DEAD = "dead"
    RETRYING = "retrying"
    SNOOZED = "snoozed"
    RELEASED = "released"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    LOST = "lost"
    ABANDONED = "abandoned"
    RESCHEDULED = "rescheduled"
    UPDATED = "updated"
    """What its user says of the job was changed; where it stands was not."""
    RETIMED = "retimed"
    """The clock was ahead when the job was stamped, and the stamp was brought back. The state stays."""


ENCRYPTED = "encrypted"
"""Stands for the message in the events of encrypted jobs."""


def failure_told(code: str | None, message: str | None) -> str:
    """`KeyError: 'customer'`. Without a message it is encrypted: failures have one."""
    if message in (None, ENCRYPTED):
        return f"{code} (encrypted)" if code else "(encrypted)"
    if not code or code == message:
        return str(message)
    return f"{code}: {message}" if message else code


class Failure(Redacted, frozen=True):
    """What went wrong the last time something did."""

    message: str
    category: Category
    code: str | None = None

    @property
    def told(self) -> str:
        """For people: the code, which is the class of what was raised, before the message."""
        return failure_told(self.code, self.message)


class Dependency(msgspec.Struct, frozen=True):
    """This job waits for `job_id`."""

    job_id: str
    kind: DependencyKind = DependencyKind.AFTER


class Edge(msgspec.Struct, frozen=True):
    """One dependency as stored: `child_id` waits for `parent_id`.

    `outcome` is the parent's final state, written in the same atomic step that ends the parent.
    `seen` says that the child has been judged since; an outcome not yet seen is work for the sweep.
    """

    parent_id: str
    child_id: str
    kind: DependencyKind
    outcome: State | None = None
    seen: bool = False


class Lease(Redacted, frozen=True):
    """A worker's hold on a job: what every write of the worker is fenced by."""

    job_id: str
    token: str
    seconds: float | None = None
    """How long a heartbeat makes it last. None: without end."""


class Job(Redacted, Generic[R_co], frozen=True, kw_only=True):
    """One job, as the store holds it. Times are aware and in UTC.

    `Job[str]` is for type checkers: what the handler returns, known where the job came from its task.

    `payload`, `result` and `checkpoint` decode the stored JSON on each access. Where it is encrypted and
    the manager has no key for it, they are a `headrace.envelope.Sealed`.
    """

    # who it is: never changes, but for tags, priority, correlation_id and callback_url, which an update may
    # give another value
    id: str
    tenant: str = DEFAULT_TENANT
    queue: str = DEFAULT_QUEUE
    type: str
    tags: tuple[str, ...] = ()
    """Sorted, without repeats."""
    payload_json: bytes = b"null"
    priority: int = Priority.NORMAL
    created_at: datetime
    key: str | None = None
    previous_id: str | None = None
    """The job that this one runs again (redrive)."""
    parent_id: str | None = None
    """The running job that spawned this one."""
    correlation_id: str | None = None
    callback_url: str | None = None
    limit_key: str | None = None
    """What the per-key limits of its queue count this job by; part of its lane."""
    depth: int = 0
    """The longest chain of dependencies above this job."""
    seq: int = 0
    """Insertion sequence, given by the store; ties in `run_at` go to the smaller."""

    # how it may run: never changes
    max_attempts: int | None = None
    """None: unlimited."""
    lease_seconds: float | None = None
    """How long a claim holds without a heartbeat. None: until the worker is declared gone."""
    timeout_seconds: float | None = None
    expires_at: datetime | None = None
    """End of the job's lifetime: past it, it is dead unless it ended before."""
    backoff_json: bytes | None = None
    """The job's own backoff; None takes the queue's."""

    # where it stands: only lifecycle.apply writes these
    state: State
    version: int = 1
    """Counts changes; every write is compared with it."""
    run_at: datetime
    updated_at: datetime
    attempt: int = 0
    """Counts claims."""
    failures: int = 0
    losses: int = 0
    token: str | None = None
    """The lease token; set while leased, and only then."""
    lease_until: datetime | None = None
    assignee: str | None = None
    """The last worker; never cleared."""
    assigned_at: datetime | None = None
    scheduled_at: datetime | None = None
    """When the present or last attempt had become ready; wait = assigned_at - scheduled_at."""
    started_at: datetime | None = None
    """When the first attempt started."""
    last_failed_at: datetime | None = None
    finalized_at: datetime | None = None
    failure: Failure | None = None
    result_json: bytes | None = None

    # what the worker says meanwhile: fenced, but no change of state and no event
    progress: float | None = None
    progress_note: str | None = None
    checkpoint_json: bytes | None = None
    log_json: bytes | None = None
    """The last lines that handlers have logged, over all attempts."""

    # how its contents are encrypted: no part of the row, the manager's own
    seals: Seals | None = None
    """None: as far as the manager has looked, nothing of this job is encrypted."""

    def __repr__(self) -> str:
        return (
            f"Job(id={self.id!r}, type={self.type!r}, queue={self.queue!r}, tenant={self.tenant!r}, "
            f"state={self.state.value!r}, attempt={self.attempt})"
        )

    @property
    def payload(self) -> Any:
        return codec.decode(self.payload_json)

    @property
    def result(self) -> Any:
        return None if self.result_json is None else codec.decode(self.result_json)

    @property
    def checkpoint(self) -> Any:
        return None if self.checkpoint_json is None else codec.decode(self.checkpoint_json)

    @property
    def log(self) -> list[Any]:
        if self.log_json is None:
            return []
        lines = codec.decode(self.log_json)
        return lines if isinstance(lines, list) else [lines]  # one that says: encrypted

    @property
    def lease(self) -> Lease | None:
        """The hold on this job, while it is leased."""
        return None if self.token is None else Lease(self.id, self.token, self.lease_seconds)

    @property
    def is_sealed(self) -> bool:
        """Encrypted, and its reader cannot decrypt it: a worker must not run it."""
        kept = (self.checkpoint_json, self.log_json, self.result_json)
        return is_sealed(self.payload_json) or (kept != _NONE_KEPT and any(map(is_sealed, kept)))

    @property
    def is_terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def is_leased(self) -> bool:
        return self.state in LEASED

    @property
    def is_exhausted(self) -> bool:
        """The budget: failures and losses count, snoozes and releases do not."""
        return self.max_attempts is not None and self.failures + self.losses >= self.max_attempts

    def is_due(self, now: datetime) -> bool:
        return self.state in CLAIMABLE and self.run_at <= now

    def to_dict(self) -> dict[str, Any]:
        """The job in JSON values, as `headrace show --json` prints it: without its lease token."""
        from headrace import job_record  # noqa: PLC0415 - it imports this module

        return job_record.as_dict(self)

    def _repr_html_(self) -> str:
        from headrace import job_record  # noqa: PLC0415 - as above

        return job_record.as_html(self)

    if not TYPE_CHECKING:  # to type checkers an unknown attribute stays an error
        locals().update({name: Elsewhere(name) for name in ELSEWHERE})


class Event(Redacted, frozen=True, kw_only=True):
    """One change of one job, written in the same atomic step as the change.

    Folding a job's events in order gives the lifecycle part of its row (`history.fold`).
    """

    seq: int = 0
    """Unique within the store, given by it."""
    cursor: str = ""
    """Where a reader that has seen this event resumes. Opaque."""
    at: datetime
    tenant: str
    queue: str
    type: str
    job_id: str
    kind: EventKind
    before: State | None
    after: State
    version: int
    attempt: int
    failures: int
    losses: int
    priority: int
    run_at: datetime
    worker: str | None = None
    lease_until: datetime | None = None
    category: Category | None = None
    code: str | None = None
    message: str | None = None
    """The error's message, cut to 1,000 characters."""
    wait_us: int | None = None
    """leased: from ready to claimed."""
    run_us: int | None = None
    """Leaving a lease: how long the attempt held it."""
    payload_bytes: int | None = None
    """enqueued only."""
    result_bytes: int | None = None
    """completed only."""
    detail_json: bytes | None = None
    """enqueued: tags, max_attempts, expires_at, key, links and dependencies. updated: what was changed."""

    def __repr__(self) -> str:
        return (
            f"Event(cursor={self.cursor!r}, job_id={self.job_id!r}, kind={self.kind.value!r}, "
            f"after={self.after.value!r}, attempt={self.attempt})"
        )


class Change(msgspec.Struct, frozen=True):
    """What a command did to a job: the row after, the row it was computed from, and the event."""

    before: Job
    after: Job
    event: Event


def new_id() -> str:
    """A fresh job id: a random UUID, version 4."""
    return new_ids(1)[0]


def new_ids(count: int) -> list[str]:
    """So many of them, by one draw of randomness; `uuid.UUID` would take longer than all else of a job."""
    drawn = os.urandom(16 * count).hex()
    return [
        f"{one[:8]}-{one[8:12]}-4{one[13:16]}-{_VARIANT[one[16]]}{one[17:20]}-{one[20:]}"
        for one in (drawn[start : start + 32] for start in range(0, 32 * count, 32))
    ]


def fresh_ids(count: int) -> Iterator[str]:
    """Ids without end, drawn together while the first `count` are taken: that costs half."""
    while True:
        yield from new_ids(min(max(count, 1), _IDS_DRAWN_MAX))
        count -= _IDS_DRAWN_MAX


_IDS_DRAWN_MAX = 1000
_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
"""The two bits that a UUID fixes at the head of its fourth group."""
