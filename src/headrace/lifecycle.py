"""The one lifecycle: which command takes a job from which state to which. Pure.

`RULES` is the whole table; `apply` is the only code that changes a job's state. No I/O, no clock, no
randomness: all three come in as arguments. The diagram in docs/explain/lifecycle.md is generated from
the table.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, assert_never

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from headrace import history
from headrace.clock import STEP_SECONDS, seconds_ahead, to_us
from headrace.errors import (
    InvalidInput,
    InvalidTransition,
    JobCancelled,
    JobTerminal,
    LeaseExpired,
    StaleToken,
)
from headrace.model import (
    CLAIMABLE,
    LEASED,
    TERMINAL,
    Category,
    Change,
    Dependency,
    Event,
    EventKind,
    Failure,
    Job,
    State,
)
from headrace.policy import CancelMode
from headrace.redaction import Redacted
from headrace.retry import Backoff, NoBackoff

FAILURE_CHARS_MAX = 100_000
FAILURE_CODE_CHARS_MAX = 200

# --- commands ------------------------------------------------------------------------------------


class Verb(enum.StrEnum):
    """The name of every command; submit stands for the birth of a job."""

    SUBMIT = "submit"
    UNBLOCK = "unblock"
    CLAIM = "claim"
    COMPLETE = "complete"
    FAIL = "fail"
    SNOOZE = "snooze"
    RELEASE = "release"
    STOP = "stop"
    CANCEL = "cancel"
    ACKNOWLEDGE_CANCEL = "acknowledge_cancel"
    EXPIRE = "expire"
    ABANDON = "abandon"
    OUTLIVE = "outlive"
    PROPAGATE = "propagate"
    RESCHEDULE = "reschedule"
    UPDATE = "update"
    RETIME = "retime"


class _Command(Redacted, frozen=True, kw_only=True):
    failure: Failure | None = None
    """Recorded with the job when given; otherwise what was recorded before stays."""
    result_json: bytes | None = None


class _WorkerCommand(_Command, frozen=True, kw_only=True):
    token: str | None
    """The lease token. None: unfenced, for policies that have no fencing."""


class Unblock(_Command, frozen=True, kw_only=True):
    """Everything the job waited for has ended well."""


class Claim(_Command, frozen=True, kw_only=True):
    """Lease the job to a worker."""

    worker: str
    nonce: str
    """Fresh randomness; with the attempt it makes the token, which no earlier claim can have had."""
    lease_seconds: float | None = None
    """Overrides the job's own."""
    due_by: datetime | None = None
    """Due is what has a run_at up to this. None: up to now."""


class Complete(_WorkerCommand, frozen=True, kw_only=True):
    """The handler succeeded."""


class Fail(_WorkerCommand, frozen=True, kw_only=True):
    """The handler failed. Retried while `retry` is allowed and the budget lasts."""

    retry: bool = True
    backoff: Backoff = NoBackoff()
    draw: float = 0.5
    """The dice for the backoff's jitter, in [0, 1)."""
    retry_after: float | None = None
    """Seconds; overrides the backoff."""
    retry_at: datetime | None = None
    """Overrides both."""


class Snooze(_WorkerCommand, frozen=True, kw_only=True):
    """The handler asks to be called again later, at no cost to the budget."""

    until: datetime


class Release(_WorkerCommand, frozen=True, kw_only=True):
    """The worker gives the job back unfinished, at no cost to the budget."""


class Stop(_WorkerCommand, frozen=True, kw_only=True):
    """The worker ended the job on request."""


class Cancel(_Command, frozen=True, kw_only=True):
    """Somebody wants the job not to run, or to stop."""

    mode: CancelMode


class AcknowledgeCancel(_WorkerCommand, frozen=True, kw_only=True):
    """The worker answers a cancellation: it stopped the job, or it did not have it."""

    was_executing: bool


class Expire(_Command, frozen=True, kw_only=True):
    """The lease lapsed, or the worker is gone."""

    counted: bool = True
    """False: the loss costs nothing of the budget, and so ends no job."""


class Abandon(_Command, frozen=True, kw_only=True):
    """Nobody will ever know how it ended."""


class Outlive(_Command, frozen=True, kw_only=True):
    """The job's lifetime is over."""


class Propagate(_Command, frozen=True, kw_only=True):
    """A job this one needed ended badly."""

    target: State


class Reschedule(_Command, frozen=True, kw_only=True):
    """A job that waits is to be due at another time, or now. What it failed with stays."""

    run_at: datetime


class Update(_Command, frozen=True, kw_only=True):
    """Somebody says something else of the job. Where it stands, and who holds it, stays."""

    tags: tuple[str, ...] | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    correlation_id: str | UnsetType | None = UNSET
    callback_url: str | UnsetType | None = UNSET
    depth: int | UnsetType = UNSET
    """Not said by anybody: it follows from what a blocked job comes to wait for."""


class Retime(_Command, frozen=True, kw_only=True):
    """The clock was ahead when the job was stamped: this is when it is due, or how long its lease holds."""

    run_at: datetime | None = None
    """None: as it is."""
    lease_until: datetime | None = None
    """None: as it is. A store takes no lease from a change: it is written by a heartbeat, and told here."""


Command = (
    Unblock
    | Claim
    | Complete
    | Fail
    | Snooze
    | Release
    | Stop
    | Cancel
    | AcknowledgeCancel
    | Expire
    | Abandon
    | Outlive
    | Propagate
    | Reschedule
    | Update
    | Retime
)

VERBS: Mapping[type, Verb] = {
    Unblock: Verb.UNBLOCK,
    Claim: Verb.CLAIM,
    Complete: Verb.COMPLETE,
    Fail: Verb.FAIL,
    Snooze: Verb.SNOOZE,
    Release: Verb.RELEASE,
    Stop: Verb.STOP,
    Cancel: Verb.CANCEL,
    AcknowledgeCancel: Verb.ACKNOWLEDGE_CANCEL,
    Expire: Verb.EXPIRE,
    Abandon: Verb.ABANDON,
    Outlive: Verb.OUTLIVE,
    Propagate: Verb.PROPAGATE,
    Reschedule: Verb.RESCHEDULE,
    Update: Verb.UPDATE,
    Retime: Verb.RETIME,
}

# --- the table -----------------------------------------------------------------------------------


class When(enum.StrEnum):
    """What must hold, besides the state, for a rule to apply."""

    ALWAYS = ""
    DEPENDENCIES_OPEN = "waits for other jobs"
    DUE = "due"
    RETRY = "retriable, budget left"
    FINAL = "permanent"
    EXHAUSTED = "retriable, budget spent"
    LOSS_AFFORDABLE = "budget left"
    LOSS_FATAL = "budget spent"
    IMMEDIATE = "immediate"
    COOPERATIVE = "cooperative"
    WAS_EXECUTING = "was executing"
    WAS_NOT_EXECUTING = "was not executing"
    TARGET = "as the parent ended"


class Rule(msgspec.Struct, frozen=True):
    """`verb` takes a job from `source` to `target` when `when` holds."""

    verb: Verb
    source: State | None
    target: State
    when: When = When.ALWAYS
    unfenced: bool = False
    """Only without a token: a fenced worker has lost its lease by then."""


def _rules(
    verb: Verb,
    sources: Iterable[State],
    target: State,
    when: When = When.ALWAYS,
    *,
    unfenced: bool = False,
) -> list[Rule]:
    return [Rule(verb, source, target, when, unfenced) for source in sources]


_S = State
_WAITING = (_S.BLOCKED, _S.PENDING, _S.RETRYING, _S.LOST)
_LIVE = (*_WAITING, _S.RUNNING, _S.CANCELLING)

RULES: tuple[Rule, ...] = (
    Rule(Verb.SUBMIT, None, _S.BLOCKED, When.DEPENDENCIES_OPEN),
    Rule(Verb.SUBMIT, None, _S.PENDING),
    Rule(Verb.UNBLOCK, _S.BLOCKED, _S.PENDING),
    *_rules(Verb.CLAIM, (_S.PENDING, _S.RETRYING, _S.LOST), _S.RUNNING, When.DUE),
    *_rules(Verb.COMPLETE, (_S.RUNNING, _S.CANCELLING), _S.COMPLETED),
    *_rules(Verb.COMPLETE, (_S.LOST, _S.ABANDONED), _S.COMPLETED, unfenced=True),
    Rule(Verb.FAIL, _S.RUNNING, _S.RETRYING, When.RETRY),
    Rule(Verb.FAIL, _S.RUNNING, _S.FAILED, When.FINAL),
    Rule(Verb.FAIL, _S.RUNNING, _S.DEAD, When.EXHAUSTED),
    Rule(Verb.FAIL, _S.CANCELLING, _S.CANCELLED),
    Rule(Verb.FAIL, _S.LOST, _S.RETRYING, When.RETRY, unfenced=True),
    Rule(Verb.FAIL, _S.LOST, _S.FAILED, When.FINAL, unfenced=True),
    Rule(Verb.FAIL, _S.LOST, _S.DEAD, When.EXHAUSTED, unfenced=True),
    Rule(Verb.SNOOZE, _S.RUNNING, _S.RETRYING),
    Rule(Verb.SNOOZE, _S.CANCELLING, _S.CANCELLED),
    Rule(Verb.RELEASE, _S.RUNNING, _S.RETRYING),
    Rule(Verb.RELEASE, _S.CANCELLING, _S.CANCELLED),
    Rule(Verb.RELEASE, _S.LOST, _S.RETRYING, unfenced=True),
    *_rules(Verb.STOP, (_S.RUNNING, _S.CANCELLING), _S.CANCELLED),
    *_rules(Verb.STOP, (_S.LOST, _S.ABANDONED), _S.CANCELLED, unfenced=True),
    *_rules(Verb.CANCEL, _WAITING, _S.CANCELLED),
    Rule(Verb.CANCEL, _S.RUNNING, _S.CANCELLING, When.COOPERATIVE),
    *_rules(Verb.CANCEL, (_S.RUNNING, _S.CANCELLING), _S.CANCELLED, When.IMMEDIATE),
    Rule(Verb.ACKNOWLEDGE_CANCEL, _S.CANCELLING, _S.CANCELLED, When.WAS_EXECUTING),
    Rule(Verb.ACKNOWLEDGE_CANCEL, _S.CANCELLING, _S.ABANDONED, When.WAS_NOT_EXECUTING),
    Rule(Verb.EXPIRE, _S.RUNNING, _S.LOST, When.LOSS_AFFORDABLE),
    Rule(Verb.EXPIRE, _S.RUNNING, _S.DEAD, When.LOSS_FATAL),
    Rule(Verb.EXPIRE, _S.CANCELLING, _S.ABANDONED),
    *_rules(Verb.ABANDON, (_S.RUNNING, _S.CANCELLING, _S.RETRYING, _S.LOST), _S.ABANDONED),
    *_rules(Verb.OUTLIVE, _LIVE, _S.DEAD),
    Rule(Verb.PROPAGATE, _S.BLOCKED, _S.FAILED, When.TARGET),
    Rule(Verb.PROPAGATE, _S.BLOCKED, _S.DEAD, When.TARGET),
    Rule(Verb.PROPAGATE, _S.BLOCKED, _S.CANCELLED, When.TARGET),
    *_rules(Verb.RESCHEDULE, (_S.PENDING, _S.RETRYING), _S.PENDING),
    *(Rule(Verb.UPDATE, state, state) for state in _LIVE),
    *(Rule(Verb.RETIME, state, state) for state in _LIVE),
)

_BY_VERB_AND_SOURCE: dict[tuple[Verb, State | None], list[Rule]] = {}
for _rule in RULES:
    _BY_VERB_AND_SOURCE.setdefault((_rule.verb, _rule.source), []).append(_rule)


def rules_for(verb: Verb, source: State | None) -> tuple[Rule, ...]:
    """Every rule of this verb from this state; empty when the verb has no meaning there."""
    return tuple(_BY_VERB_AND_SOURCE.get((verb, source), ()))


# --- guards --------------------------------------------------------------------------------------


def check_lease(job: Job, token: str, now: datetime) -> None:
    """Raise unless the token's holder may write. The order is part of the contract.

    JobCancelled, then JobTerminal, then StaleToken, then LeaseExpired ("not found" comes before all
    of them and is the reader's to say). No lease outlasts its job's lifetime or execution timeout.
    """
    if job.state in (State.CANCELLED, State.ABANDONED):
        raise JobCancelled(f"job {job.id} is {job.state}; the write was refused", job_id=job.id)
    if job.state in TERMINAL:
        raise JobTerminal(
            f"job {job.id} is {job.state} already; the write was refused", job_id=job.id
        )
    if job.token is None or job.token != token:
        raise StaleToken(
            f"the lease token is not the present one of job {job.id}; the write was refused",
            job_id=job.id,
        )
    if not lease_holds(job, now):
        raise lease_expired(job, now)


def lease_holds(job: Job, now: datetime) -> bool:
    """Whether the lease of a leased job goes on. What every store's fence must equal.

    An execution timeout is exceeded by who runs longer; the other two are over when they are reached.
    """
    timeout = times_out_at(job)
    return (
        (job.lease_until is None or job.lease_until > now)
        and (job.expires_at is None or job.expires_at > now)
        and (timeout is None or timeout >= now)
    )


def times_out_at(job: Job) -> datetime | None:
    """Until when the present attempt may run: its execution timeout counts from the claim."""
    if not job.is_leased or job.assigned_at is None or job.timeout_seconds is None:
        return None
    return job.assigned_at + timedelta(seconds=job.timeout_seconds)


def is_overdue(job: Job, now: datetime) -> bool:
    """Whether a leased job has run into its lifetime or execution timeout, whatever its lease."""
    return job.is_leased and not lease_holds(replace(job, lease_until=None), now)


def lease_expired(job: Job, now: datetime) -> LeaseExpired:
    """Why the lease does not hold: the one refusal, whichever of its ends came first."""
    timeout = times_out_at(job)
    if job.expires_at is not None and job.expires_at <= now:
        why = f"the lifetime of job {job.id} ended at {job.expires_at.isoformat()}"
    elif timeout is not None and timeout < now:
        why = f"job {job.id} exceeded its execution timeout at {timeout.isoformat()}"
    else:
        when = "" if job.lease_until is None else f" at {job.lease_until.isoformat()}"
        why = f"the lease of job {job.id} lapsed{when}"
    return LeaseExpired(f"{why}; the write was refused", job_id=job.id)


# --- applying ------------------------------------------------------------------------------------


def submit(
    job: Job, dependencies: Iterable[Dependency] = (), *, waits: bool = False
) -> tuple[Job, Event]:
    """The first row of a job and its first event. `waits`: a dependency has not ended yet."""
    rules = rules_for(Verb.SUBMIT, None)
    rule = rules[0] if waits else rules[1]
    born = (
        job
        if job.state is rule.target and job.version == 1
        else replace(job, state=rule.target, version=1)
    )
    return born, history.event_of(
        None, born, EventKind.ENQUEUED, born.created_at, history.detail_of(born, dependencies)
    )


def submit_alike(job: Job, like: Event) -> tuple[Job, Event]:
    """As `submit`, for one that waits for nothing and is, but for id and payload, as the one of the event.

    Where thousands of jobs are alike, so is what is written of them.
    """
    return job, replace(like, job_id=job.id, payload_bytes=len(job.payload_json))


def apply(job: Job, command: Command, now: datetime) -> Change:
    """The job after the command, with its event; or a refusal, and the job is as it was.

    A job's own time never runs back: what comes by a clock that is behind, or was stamped long before
    its turn came, happens at the time of the job's last change. What is to come (the end of a lease, the
    next try) counts from there, too; unless the last change is so far ahead that the clock was set back.
    """
    at = max(now, job.updated_at)
    if seconds_ahead(at, now) <= STEP_SECONDS:
        now = at
    verb = VERBS.get(type(command))
    if verb is None:
        raise InvalidInput(
            f"a {type(command).__name__} is not a command of the lifecycle; job {job.id} was left as it is"
        )
    token = command.token if isinstance(command, _WorkerCommand) else None
    if token is not None:
        check_lease(_as_reported(job, command), token, now)
    rule = _pick(job, command, verb, now, fenced=token is not None)
    fields = _effects(job, command, rule, now, at)
    after = replace(job, **fields)
    detail = history.update_of(job, after) if verb is Verb.UPDATE else None
    return Change(job, after, history.event_of(job, after, kind_of(verb, rule.target), at, detail))


class Claims:
    """Leases many jobs by one command, each as `apply` does: what is the same for all is worked out once."""

    __slots__ = ("_command", "_horizon", "_lease_until", "_now", "_now_us")

    def __init__(self, command: Claim, now: datetime) -> None:
        self._command = command
        self._now = now
        self._now_us = to_us(now)
        self._horizon = command.due_by or now
        self._lease_until: dict[float | None, datetime | None] = {None: None}

    def of(self, job: Job) -> Change:
        """The change; `apply` makes it, or refuses it, where something is not usual."""
        command, now = self._command, self._now
        if job.state not in CLAIMABLE or job.updated_at > now or job.run_at > self._horizon:
            return apply(job, command, now)
        seconds = job.lease_seconds if command.lease_seconds is None else command.lease_seconds
        if seconds not in self._lease_until:
            self._lease_until[seconds] = now + timedelta(seconds=seconds or 0)
        lease_until = self._lease_until[seconds]
        version, attempt = job.version + 1, job.attempt + 1
        scheduled_at = min(max(job.run_at, job.updated_at), now)
        after = replace(
            job,
            state=State.RUNNING,
            version=version,
            updated_at=now,
            attempt=attempt,
            token=token_of(attempt, command.nonce),
            lease_until=lease_until,
            assignee=command.worker,
            assigned_at=now,
            scheduled_at=scheduled_at,
            started_at=job.started_at or now,
        )
        event = Event(
            at=now,
            tenant=job.tenant,
            queue=job.queue,
            type=job.type,
            job_id=job.id,
            kind=EventKind.LEASED,
            before=job.state,
            after=State.RUNNING,
            version=version,
            attempt=attempt,
            failures=job.failures,
            losses=job.losses,
            priority=job.priority,
            run_at=job.run_at,
            worker=command.worker,
            lease_until=lease_until,
            wait_us=self._now_us - to_us(scheduled_at),
        )
        return Change(job, after, event)


class Completions:
    """Completes many jobs at one time, each as `apply` does with a fenced `Complete`.

    For the outcome that nearly every attempt has. It knows what is the same for the jobs of one claim, and
    leaves to `apply` whatever is not usual. A test compares the two field by field.
    """

    __slots__ = ("_assigned_at", "_now", "_run_us", "_timeout_seconds", "_times_out")

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._assigned_at: datetime | None = None
        self._timeout_seconds: float | None = None
        self._times_out = False
        self._run_us = 0

    def of(self, job: Job, token: str, result_json: bytes | None) -> Change | None:
        """The change; None: `apply` knows better, or knows why not."""
        now = self._now
        if (
            job.state not in LEASED
            or job.token != token
            or job.updated_at > now
            or job.assigned_at is None
            or job.started_at is None
            or (job.lease_until is not None and job.lease_until <= now)
            or (job.expires_at is not None and job.expires_at <= now)
            or self._is_late(job, job.assigned_at)
        ):
            return None
        version = job.version + 1
        after = replace(
            job,
            state=State.COMPLETED,
            version=version,
            updated_at=now,
            token=None,
            lease_until=None,
            finalized_at=now,
            result_json=job.result_json if result_json is None else result_json,
        )
        event = Event(
            at=now,
            tenant=job.tenant,
            queue=job.queue,
            type=job.type,
            job_id=job.id,
            kind=EventKind.COMPLETED,
            before=job.state,
            after=State.COMPLETED,
            version=version,
            attempt=job.attempt,
            failures=job.failures,
            losses=job.losses,
            priority=job.priority,
            run_at=job.run_at,
            worker=job.assignee,
            run_us=self._run_us,
            result_bytes=None if after.result_json is None else len(after.result_json),
        )
        return Change(job, after, event)

    def _is_late(self, job: Job, assigned_at: datetime) -> bool:
        """Past its execution timeout. Jobs of one claim were assigned at one time."""
        if assigned_at != self._assigned_at or job.timeout_seconds != self._timeout_seconds:
            timeout = times_out_at(job)
            self._assigned_at, self._timeout_seconds = assigned_at, job.timeout_seconds
            self._times_out = timeout is not None and timeout < self._now
            self._run_us = to_us(self._now) - to_us(assigned_at)
        return self._times_out


def _as_reported(job: Job, command: Command) -> Job:
    """The job as its lease is checked: that it ran into its execution timeout is what a holder may report."""
    says_so = (
        isinstance(command, Fail)
        and command.failure is not None
        and command.failure.category is Category.TIMEOUT
    )
    return replace(job, timeout_seconds=None) if says_so else job


def _pick(job: Job, command: Command, verb: Verb, now: datetime, *, fenced: bool) -> Rule:
    for rule in _BY_VERB_AND_SOURCE.get((verb, job.state), ()):
        if not (fenced and rule.unfenced) and _holds(rule, job, command, now):
            return rule
    if job.state in TERMINAL:
        raise JobTerminal(f"job {job.id} is {job.state} already; {verb} was refused", job_id=job.id)
    raise InvalidTransition(f"job {job.id} is {job.state}; {verb} is not possible", job_id=job.id)


def _holds(rule: Rule, job: Job, command: Command, now: datetime) -> bool:
    match rule.when:
        case When.ALWAYS:
            return True
        case When.DUE:
            assert isinstance(command, Claim)
            return job.run_at <= (command.due_by or now)
        case When.RETRY | When.FINAL | When.EXHAUSTED:
            assert isinstance(command, Fail)
            if not command.retry:
                return rule.when is When.FINAL
            return rule.when is (
                When.EXHAUSTED if _spent(job, known=job.state is _S.LOST) else When.RETRY
            )
        case When.LOSS_AFFORDABLE | When.LOSS_FATAL:
            assert isinstance(command, Expire)
            return rule.when is (
                When.LOSS_FATAL if command.counted and _spent(job) else When.LOSS_AFFORDABLE
            )
        case When.IMMEDIATE | When.COOPERATIVE:
            assert isinstance(command, Cancel)
            return command.mode.value == rule.when.value
        case When.WAS_EXECUTING | When.WAS_NOT_EXECUTING:
            assert isinstance(command, AcknowledgeCancel)
            return command.was_executing is (rule.when is When.WAS_EXECUTING)
        case When.TARGET:
            assert isinstance(command, Propagate)
            return command.target is rule.target
        case When.DEPENDENCIES_OPEN:
            return False  # only `submit` asks, and it asks by argument
        case _:
            assert_never(rule.when)


def is_last_attempt(job: Job) -> bool:
    """A failure of this attempt, or its loss, would end the job."""
    return _spent(job)


def _spent(job: Job, *, known: bool = False) -> bool:
    """Would one more failure or loss exhaust the budget? `known`: it replaces a loss counted before."""
    if job.max_attempts is None:
        return False
    return job.failures + job.losses + (0 if known else 1) >= job.max_attempts


def _effects(job: Job, command: Command, rule: Rule, now: datetime, at: datetime) -> dict[str, Any]:
    """Every field that the command writes: what its verb does, under what the target state demands."""
    target = rule.target
    fields: dict[str, Any] = {"state": target, "version": job.version + 1, "updated_at": at}
    if job.state in LEASED and target not in LEASED:
        fields |= {"token": None, "lease_until": None}
    if target in TERMINAL and not history.stays_ended(job.state, target):
        fields["finalized_at"] = at
    if target in (State.CANCELLED, State.ABANDONED) and not _has_reason(job):
        fields["failure"] = Failure("cancelled", Category.CANCELLED)
    fields |= _effects_of_verb(job, command, target, now, at)
    if command.failure is not None:
        fields["failure"] = _storable(command.failure)
    if command.result_json is not None:
        fields["result_json"] = command.result_json
    return fields


def _storable(failure: Failure) -> Failure:
    """The failure in text that every store can keep: no lone surrogate, no NUL, not without end.

    A handler's message may hold anything (a file name that is not UTF-8); it must not keep the failure
    from being recorded.
    """
    message = _text(failure.message, FAILURE_CHARS_MAX)
    code = None if failure.code is None else _text(str(failure.code), FAILURE_CODE_CHARS_MAX)
    if message is failure.message and code is failure.code:
        return failure
    return replace(failure, message=message, code=code)


def _text(text: str, chars_max: int) -> str:
    if len(text) <= chars_max and text.isascii() and "\0" not in text:
        return text
    cut = text[:chars_max].replace("\0", "\ufffd")
    return cut.encode("utf-8", "replace").decode("utf-8")


def _has_reason(job: Job) -> bool:
    """Was the worker asked to stop, and told why? Then that stays the reason."""
    return (
        job.state is State.CANCELLING
        and job.failure is not None
        and job.failure.category is Category.CANCELLED
    )


def _effects_of_verb(
    job: Job, command: Command, target: State, now: datetime, at: datetime
) -> dict[str, Any]:
    match command:
        case Claim():
            return _lease(job, command, now, at)
        case Complete():
            return {} if job.started_at is not None else {"started_at": at}
        case Fail():
            fields: dict[str, Any] = {"failures": job.failures + 1, "last_failed_at": at}
            if job.state is State.LOST:
                fields["losses"] = job.losses - 1  # its outcome is known now
            if target is State.RETRYING:
                fields["run_at"] = _retry_at(job.failures + 1, command, now)
            return fields
        case Snooze():
            return {"run_at": command.until} if target is State.RETRYING else {}
        case Expire():
            if job.state is not State.RUNNING:
                return {}
            return {
                "losses": job.losses + command.counted,
                "failure": Failure("the lease lapsed", Category.SYSTEM, "lease_expired"),
            }
        case Reschedule():
            return {"run_at": command.run_at}
        case Outlive():
            return {"failure": Failure("the job's lifetime is over", Category.TIMEOUT, "lifetime")}
        case Update():
            return _said(job, command)
        case Retime(run_at=run_at, lease_until=lease_until):
            times = {"run_at": run_at, "lease_until": lease_until}
            return {name: time for name, time in times.items() if time is not None}
        case (
            Unblock()
            | Release()
            | Stop()
            | Cancel()
            | AcknowledgeCancel()
            | Abandon()
            | Propagate()
        ):
            return {}
        case _:
            assert_never(command)


def _said(job: Job, command: Update) -> dict[str, Any]:
    """What is given. `updated_at` stays the time of the last change of state: waiting is counted from it."""
    given = {name: getattr(command, name) for name in history.UPDATED}
    return {"updated_at": job.updated_at} | {
        name: value for name, value in given.items() if value is not UNSET
    }


def _lease(job: Job, command: Claim, now: datetime, at: datetime) -> dict[str, Any]:
    seconds = job.lease_seconds if command.lease_seconds is None else command.lease_seconds
    return {
        "attempt": job.attempt + 1,
        "token": token_of(job.attempt + 1, command.nonce),
        "lease_until": None if seconds is None else now + timedelta(seconds=seconds),
        "assignee": command.worker,
        "assigned_at": at,
        "scheduled_at": min(max(job.run_at, job.updated_at), at),
        "started_at": job.started_at or at,
    }


def token_of(attempt: int, nonce: str) -> str:
    """The lease token: grows with the attempt, so that an outside system can compare two."""
    return f"{attempt}.{nonce}"


def _retry_at(failures: int, command: Fail, now: datetime) -> datetime:
    if command.retry_at is not None:
        return command.retry_at
    if command.retry_after is not None:
        return now + timedelta(seconds=command.retry_after)
    return now + timedelta(seconds=command.backoff.delay(failures, command.draw))


def kind_of(verb: Verb, target: State) -> EventKind:
    if verb is Verb.UPDATE:
        return EventKind.UPDATED
    if verb is Verb.RETIME:
        return EventKind.RETIMED
    if target is State.RETRYING and verb is Verb.SNOOZE:
        return EventKind.SNOOZED
    if target is State.RETRYING and verb is Verb.RELEASE:
        return EventKind.RELEASED
    if verb is Verb.RESCHEDULE:
        return EventKind.RESCHEDULED
    return history.KIND_OF_TARGET[target]
