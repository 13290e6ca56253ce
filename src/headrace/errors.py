"""Every error Headrace raises, in one hierarchy.

Each message says what happened, what was left unchanged and, where there is something to do, what to do.
`code` is the stable, upper-case name for programs: it goes into `--json` output and, later, HTTP answers.

Two families need no I/O to understand:

* `InvalidInput` - the caller asked for something that can never work; nothing was stored.
* `Refusal` - the lifecycle does not allow the command in the job's present state; nothing was changed.
"""

from __future__ import annotations

import difflib
from datetime import datetime, timedelta
from typing import NoReturn


class HeadraceError(Exception):
    """The root: catch this to catch everything that Headrace raises on purpose."""

    code: str = "HEADRACE_ERROR"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


# --- what the caller got wrong -------------------------------------------------------------------


class InvalidInput(HeadraceError):
    """An argument can never work. Nothing was stored and nothing was changed."""

    code = "INVALID_INPUT"


class InvalidId(InvalidInput):
    """A job id is empty, too long or not text."""

    code = "INVALID_ID"


class InvalidName(InvalidInput):
    """A queue, type, tenant, worker or tag is empty, too long or has characters that are not allowed."""

    code = "INVALID_NAME"


class InvalidKey(InvalidInput):
    """An idempotency key is empty or longer than 256 characters."""

    code = "INVALID_KEY"


class InvalidLimit(InvalidInput):
    """A count, limit or duration is out of its range."""

    code = "INVALID_LIMIT"


class InvalidTime(InvalidInput):
    """A time has no time zone, or is not a time."""

    code = "INVALID_TIME"


class InvalidPriority(InvalidInput):
    """A priority is not one of 0 CRITICAL to 4 BULK."""

    code = "INVALID_PRIORITY"


class InvalidPayload(InvalidInput):
    """A payload, result or checkpoint cannot be written as JSON."""

    code = "INVALID_PAYLOAD"


class PayloadTooLarge(InvalidInput):
    """A payload, result or checkpoint is larger than the policy allows."""

    code = "PAYLOAD_TOO_LARGE"


class InvalidBatch(InvalidInput):
    """One job of a batch is bad; `index` says which. No job of the batch was stored."""

    code = "INVALID_BATCH"

    def __init__(self, message: str, *, index: int, cause: HeadraceError) -> None:
        super().__init__(message)
        self.index = index
        self.cause = cause


class InvalidDependency(InvalidInput):
    """A dependency cannot be: it is missing, or there are too many, or the chain is too deep."""

    code = "INVALID_DEPENDENCY"


class DependencyNotFound(InvalidDependency):
    """A job depends on a job that does not exist (or belongs to another tenant)."""

    code = "DEPENDENCY_NOT_FOUND"


class DependencyCycle(InvalidDependency):
    """The dependencies of a batch form a circle."""

    code = "DEPENDENCY_CYCLE"


class DuplicateJob(InvalidInput):
    """A job with this id is stored already. Nothing was stored."""

    code = "DUPLICATE_JOB"


class InvalidCursor(InvalidInput):
    """A cursor did not come from this store or this query."""

    code = "INVALID_CURSOR"


class EmptySelection(InvalidInput):
    """A bulk command named neither ids nor tags. Refused, since it would mean every job."""

    code = "EMPTY_SELECTION"


class InvalidKeyRing(InvalidInput):
    """A key ring cannot be: a key of the wrong size, an id twice, no primary key; or none was given."""

    code = "INVALID_KEY_RING"


class InvalidSignature(InvalidInput):
    """A webhook is not from who it claims to be from, or is an old one sent again."""

    code = "INVALID_SIGNATURE"


class InvalidSchedule(InvalidInput):
    """A cron expression, time zone or interval cannot be, or a schedule's job is not one for every tick."""

    code = "INVALID_SCHEDULE"


class DuplicateSchedule(InvalidInput):
    """Another schedule has this name already. It was left as it is."""

    code = "DUPLICATE_SCHEDULE"


class ScheduleNotFound(HeadraceError):
    """No schedule has this name, or it belongs to another tenant: the two are never told apart."""

    code = "SCHEDULE_NOT_FOUND"

    def __init__(self, name: str) -> None:
        super().__init__(f"schedule {name} was not found; nothing was changed")
        self.name = name


# --- what the lifecycle refuses ------------------------------------------------------------------


class JobNotFound(HeadraceError):
    """No job has this id, or it belongs to another tenant: the two are never told apart."""

    code = "JOB_NOT_FOUND"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id} was not found; nothing was changed")
        self.job_id = job_id


class BatchNotFound(HeadraceError):
    """No job belongs to a batch of this id, or only another tenant's do."""

    code = "BATCH_NOT_FOUND"

    def __init__(self, batch_id: str) -> None:
        super().__init__(f"no job of a batch {batch_id} was found")
        self.batch_id = batch_id


class BulkActNotFound(HeadraceError):
    """There is no bulk act of this id, or it is another tenant's: the two are never told apart."""

    code = "BULK_ACT_NOT_FOUND"

    def __init__(self, act_id: str) -> None:
        super().__init__(f"bulk act {act_id} was not found; nothing was changed")
        self.act_id = act_id


class Refusal(HeadraceError):
    """The lifecycle does not allow the command now. The job is as it was."""

    code = "REFUSED"

    def __init__(self, message: str, *, job_id: str) -> None:
        super().__init__(message)
        self.job_id = job_id


class JobCancelled(Refusal):
    """The job is cancelled; the cancellation stands and the write is refused."""

    code = "JOB_CANCELLED"


class JobTerminal(Refusal):
    """The job has ended; ended jobs do not change."""

    code = "JOB_TERMINAL"


class StaleToken(Refusal):
    """The lease token is not the job's present one: another worker holds it, or nobody does."""

    code = "STALE_TOKEN"


class LeaseExpired(Refusal):
    """The token is right but the lease has lapsed; the job will be given to another worker."""

    code = "LEASE_EXPIRED"


class InvalidTransition(Refusal):
    """The command has no meaning in the job's state."""

    code = "INVALID_TRANSITION"


class NotTerminal(Refusal):
    """Only ended jobs can be deleted or redriven; at least one of these has not ended."""

    code = "NOT_TERMINAL"


# --- what trimming the log refuses ---------------------------------------------------------------


class NoReaders(HeadraceError):
    """Nobody is known to hold the log by itself: what is trimmed would be gone for good."""

    code = "NO_READERS"

    def __init__(self) -> None:
        super().__init__(
            "no reader of the event log is registered, so what is trimmed would be gone for good; nothing "
            "was trimmed: run the pipeline that keeps it, or trim without readers if nobody needs it"
        )


# --- what the limits refuse ----------------------------------------------------------------------


class QueueFull(HeadraceError):
    """As much waits on the queue as may wait there. Nothing was stored; it may work later."""

    code = "QUEUE_FULL"

    def __init__(self, message: str, *, queue: str, tenant: str | None) -> None:
        super().__init__(message)
        self.queue = queue
        self.tenant = tenant
        """Whose limit it is. None: that of the whole queue."""


# --- what is encrypted ---------------------------------------------------------------------------


class CannotDecrypt(HeadraceError):
    """Contents are encrypted, and the key is missing or they were damaged. Nothing was changed."""

    code = "CANNOT_DECRYPT"

    def __init__(self, message: str, *, key_id: str, why: str) -> None:
        super().__init__(message)
        self.key_id = key_id
        self.why = why


# --- what the store cannot do --------------------------------------------------------------------


class StoreError(HeadraceError):
    """The store could not do its work. The message says whether anything was written."""

    code = "STORE_ERROR"


class StoreClosed(StoreError):
    """The store was closed; nothing was written."""

    code = "STORE_CLOSED"


class StoreUnavailable(StoreError):
    """The store cannot be reached or stayed busy for too long; nothing was written."""

    code = "STORE_UNAVAILABLE"


class AnswerLost(StoreUnavailable):
    """The store went away before its answer came: whether it wrote is unknown."""


class StoreCorrupt(StoreError):
    """The store's data is damaged or is not Headrace's; it was left untouched."""

    code = "STORE_CORRUPT"


class SchemaTooNew(StoreError):
    """A newer Headrace wrote this store; this one leaves it untouched."""

    code = "SCHEMA_TOO_NEW"


class SchemaTooOld(StoreError):
    """The store must be migrated first; it was left untouched."""

    code = "SCHEMA_TOO_OLD"

    def __init__(self, message: str, *, version: int | None = None) -> None:
        super().__init__(message)
        self.version = version


class UnknownStore(InvalidInput):
    """No store answers to this url."""

    code = "UNKNOWN_STORE"


class Contention(StoreError):
    """A job kept changing under the command; nothing was changed, try again."""

    code = "CONTENTION"


class LogTrimmed(StoreError):
    """The events behind a cursor are gone from the log: reading on there would skip them silently.

    Nothing was read or changed. The cursor "" begins at the first event that the log still holds.
    """

    code = "LOG_TRIMMED"

    def __init__(
        self,
        cursor: str,
        start: str,
        advice: str = "start without a cursor to read what the log still holds",
    ) -> None:
        super().__init__(
            f"the log was trimmed past the cursor {cursor or 'of its beginning'}: it begins after {start} "
            f"now, and what lay between is gone; nothing was read: {advice}"
        )
        self.cursor = cursor
        self.start = start
        """The cursor of the last event that was trimmed: from there on nothing is missing."""


class SubmissionTimeout(StoreError):
    """The store did not acknowledge in time; whether the jobs were stored is not known.

    Submit again under the same idempotency key to find out without storing twice.
    """

    code = "SUBMISSION_TIMEOUT"


# --- what a handler raises to say how it failed --------------------------------------------------


class HandlerError(HeadraceError):
    """A handler's own word on its failure: raise one of its two children."""

    code = "HANDLER_ERROR"

    def __init__(self, message: str, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.__cause__ = cause


class TemporaryError(HandlerError):
    """It may work later. `retry_after` (seconds, or `"5m"`) overrides the backoff."""

    code = "TEMPORARY"

    def __init__(
        self,
        message: str,
        cause: BaseException | None = None,
        retry_after: float | timedelta | str | None = None,
    ) -> None:
        super().__init__(message, cause)
        if isinstance(retry_after, timedelta):
            retry_after = retry_after.total_seconds()
        self.retry_after = retry_after


class PermanentError(HandlerError):
    """It will never work: no retry, whatever the budget. `code` groups such errors."""

    code = "PERMANENT"

    def __init__(
        self, message: str, cause: BaseException | None = None, code: str | None = None
    ) -> None:
        super().__init__(message, cause)
        self.error_code = code
        if code is not None:
            self.code = code


class Snooze(HandlerError):
    """Not an error: the handler asks to be run again later, at no cost to the job's budget."""

    code = "SNOOZE"

    def __init__(
        self, seconds: float | timedelta | str | None = None, *, until: datetime | None = None
    ) -> None:
        super().__init__("snoozed")
        if isinstance(seconds, timedelta):
            seconds = seconds.total_seconds()
        self.seconds = seconds
        self.until = until


# --- what a caller of the application hears ------------------------------------------------------


class UnknownTask(InvalidInput):
    """No task of that name is registered; nothing was stored."""

    code = "UNKNOWN_TASK"


class NotEnded(Refusal):
    """The job has no result yet."""

    code = "NOT_ENDED"


class JobFailed(HeadraceError):
    """The job ended, but not with a result. `job` says how."""

    code = "JOB_FAILED"

    def __init__(self, message: str, job: object) -> None:
        super().__init__(message)
        self.job = job


# --- what a server answers to a request that cannot be served ------------------------------------


class InvalidRequest(InvalidInput):
    """A request's body, query or headers cannot be read. Nothing was stored or changed."""

    code = "INVALID_REQUEST"


class KeyReused(InvalidInput):
    """The idempotency key stands for a job with other content. Nothing was stored."""

    code = "KEY_REUSED"


class RequestTooLarge(InvalidInput):
    """The body of a request is larger than the server takes, or came too slowly. Nothing was stored."""

    code = "REQUEST_TOO_LARGE"


class RouteNotFound(HeadraceError):
    """The server has nothing at this address, or does not answer this method there."""

    code = "ROUTE_NOT_FOUND"


class Unauthenticated(HeadraceError):
    """No token was shown, or one that is unknown, expired or revoked. Nothing was read or changed."""

    code = "UNAUTHENTICATED"


class Forbidden(HeadraceError):
    """The token is good, but not for this. Nothing was read or changed."""

    code = "FORBIDDEN"


class TooManyRequests(HeadraceError):
    """More at once, or in a second, than the server allows. Nothing was changed; it may work later."""

    code = "TOO_MANY_REQUESTS"

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NotOverHttp(InvalidInput):
    """The server's API has no route for this: it is for whoever reaches the store itself."""

    code = "NOT_OVER_HTTP"

    def __init__(self, verb: str) -> None:
        super().__init__(
            f"{verb} is not to be had over HTTP; nothing was changed: ask where the store itself is reached"
        )
        self.verb = verb


# --- what a fleet of workers on Spark cannot do --------------------------------------------------


class FleetNotFound(HeadraceError):
    """No fleet of this name was ever started on this store."""

    code = "FLEET_NOT_FOUND"

    def __init__(self, name: str) -> None:
        super().__init__(f"no fleet {name} is known to this store; nothing was changed")
        self.name = name


class FleetRunning(HeadraceError):
    """A fleet of this name runs already; it goes on as it was."""

    code = "FLEET_RUNNING"


class FleetFailed(HeadraceError):
    """A fleet ended because its application, or Spark, does not run there. What it held was given back."""

    code = "FLEET_FAILED"


def __getattr__(name: str) -> NoReturn:
    """A guessed name is told those that come near it: `NotFound` is `JobNotFound`, among others."""
    known = [one for one, kind in globals().items() if isinstance(kind, type) and one[0].isupper()]
    near = [one for one in known if name in one or one in name]
    near = near or difflib.get_close_matches(name, known)
    hint = f": there is {', '.join(near[:4])}" if near and not name.startswith("_") else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}", name=name)
