"""Encryption at rest: what is sealed on its way into the store, and opened on its way out.

The one place that knows both forms of a job. Inside the manager jobs are open, as far as the ring has the
keys; `Job.seals` remembers how the same contents stand in the store, so that what a change leaves alone is
not re-encrypted, and what could not be opened is written back as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from headrace import envelope, history
from headrace.crypto import KeyRing, Place
from headrace.envelope import Contents, Seals, is_sealed, is_sealed_text
from headrace.errors import CannotDecrypt
from headrace.model import Change, Failure, Job
from headrace.policy import Policies
from headrace.stores.base import Note

PAYLOAD, RESULT, CHECKPOINT, LOG, ERROR = "payload", "result", "checkpoint", "log", "error"
"""The names of the fields, as contents are bound to them: part of the format, never to be changed."""
NOT_SEALED = "not encrypted: "
"""Before a message that somebody wrote to look like an envelope."""


class Sealing:
    """Seals and opens with a key ring. Without one it seals nothing, and shows only what is sealed."""

    def __init__(self, keys: KeyRing | None, policies: Policies) -> None:
        self.keys = keys
        self._policies = policies

    def encrypts(self, job: Job) -> bool:
        """Whether what is written of this job is to be sealed. Once sealed, a job stays so."""
        return self.keys is not None and (
            job.seals is not None or self._policies.of(job.queue).encrypted
        )

    # --- out of the store ------------------------------------------------------------------------

    def opened(self, jobs: Iterable[Job]) -> list[Job]:
        # Most jobs have no more than a payload, and most stores nothing sealed: asked in place, since
        # every job that anybody reads comes by here.
        return [
            self.open(job)
            if job.payload_json.startswith(envelope.HEAD)
            or (
                (job.failure or job.result_json or job.checkpoint_json or job.log_json) is not None
                and _has_seals(job)
            )
            else job
            for job in jobs
        ]

    def open(self, job: Job) -> Job:
        """The job as its reader may see it."""
        stored = contents_of(job)
        shown = Contents(
            self._json(job, PAYLOAD, stored.payload_json) or b"null",
            self._json(job, RESULT, stored.result_json),
            self._json(job, CHECKPOINT, stored.checkpoint_json),
            self._json(job, LOG, stored.log_json),
            None if stored.message is None else self._text(job, stored.message),
        )
        return _with(job, shown, Seals(shown, stored))

    def _json(self, job: Job, field: str, encoded: bytes | None) -> bytes | None:
        if encoded is None or not is_sealed(encoded):
            return encoded
        opened = self.contents(job, field, envelope.unpack(encoded))
        return opened if isinstance(opened, bytes) else envelope.pack(opened)

    def _text(self, job: Job, message: str) -> str:
        if not is_sealed_text(message):
            return message
        opened = self.contents(job, ERROR, envelope.unpack_text(message))
        return opened.decode() if isinstance(opened, bytes) else envelope.told(opened)

    def contents(self, job: Job, field: str, body: envelope.Body) -> bytes | envelope.Body:
        """The contents, or an envelope without them that says why."""
        if self.keys is None or body.key not in self.keys:
            return envelope.withheld(body)
        try:
            return self.keys.open(body, _place(job, field))
        except CannotDecrypt as error:
            return envelope.withheld(body, error.why)

    # --- into the store --------------------------------------------------------------------------

    def draft(self, job: Job) -> Job:
        """A new job as it is to be stored."""
        if not self.encrypts(job):
            return job
        return replace(job, payload_json=self.seal_json(job, PAYLOAD, job.payload_json))

    def drafted(self, given: Job, row: Job) -> Job:
        """The row that was stored for a draft, open."""
        if not is_sealed(row.payload_json):
            return row
        shown = contents_of(given)
        return _with(row, shown, Seals(shown, contents_of(row)))

    def note(self, job: Job, note: Note) -> Note:
        """What a worker says of the job, as it is to be stored."""
        if not self.encrypts(job):
            return note
        return replace(
            note,
            checkpoint_json=self._seal_if_any(job, CHECKPOINT, note.checkpoint_json),
            log_json=self._seal_if_any(job, LOG, note.log_json),
        )

    def touches(self, changes: Sequence[Change]) -> bool:
        """Whether changes are not to be stored as they are."""
        if self.keys is not None:
            return True
        for change in changes:
            after = change.after
            if after.seals is not None or (
                after.failure is not None and is_sealed_text(after.failure.message)
            ):
                return True
        return False

    def changes(self, changes: Sequence[Change]) -> Sequence[Change]:
        """Changes as they are to be stored."""
        return [self._change(change) for change in changes]

    def _change(self, change: Change) -> Change:
        before, after = change.before, change.after
        seals = after.seals
        result_json, failure = self._result(after), self._failure(after)
        stored = replace(after, result_json=result_json, failure=failure, seals=None)
        if seals is not None:
            stored = replace(
                stored,
                payload_json=seals.stored.payload_json,
                checkpoint_json=seals.stored.checkpoint_json,
                log_json=seals.stored.log_json,
            )
        # Stores tell by `before` whether a result or a failure is new.
        read = replace(
            before,
            result_json=result_json if after.result_json is before.result_json else None,
            failure=failure if after.failure is before.failure else None,
            seals=None,
        )
        secret = seals is not None or self.encrypts(after)
        event = history.without_message(change.event) if secret else change.event
        return Change(read, stored, event)

    def _result(self, job: Job) -> bytes | None:
        given, seals = job.result_json, job.seals
        if seals is not None and given == seals.shown.result_json:
            return seals.stored.result_json
        return self._seal_if_any(job, RESULT, given) if self.encrypts(job) else given

    def _failure(self, job: Job) -> Failure | None:
        failure, seals = job.failure, job.seals
        if failure is None:
            return None
        if seals is not None and failure.message == seals.shown.message:
            assert seals.stored.message is not None
            return replace(failure, message=seals.stored.message)
        if self.encrypts(job):
            return replace(failure, message=self.seal_text(job, failure.message))
        if is_sealed_text(failure.message):
            return replace(failure, message=NOT_SEALED + failure.message)
        return failure

    def seal_text(self, job: Job, message: str) -> str:
        assert self.keys is not None
        return envelope.pack_text(self.keys.seal(message.encode(), _place(job, ERROR)))

    def seal_json(self, job: Job, field: str, encoded: bytes) -> bytes:
        assert self.keys is not None
        return envelope.pack(self.keys.seal(encoded, _place(job, field)))

    def _seal_if_any(self, job: Job, field: str, encoded: bytes | None) -> bytes | None:
        return None if encoded is None else self.seal_json(job, field, encoded)


def hides_message(job: Job) -> bool:
    """Whether what stands for the message of its failure only says that there is no key to it."""
    seals = job.seals
    if seals is None or seals.stored.message is None or seals.shown.message is None:
        return False
    return is_sealed_text(seals.stored.message) and seals.shown.message.startswith(
        envelope.told(envelope.withheld(envelope.unpack_text(seals.stored.message)))
    )


def contents_of(job: Job) -> Contents:
    return Contents(
        job.payload_json,
        job.result_json,
        job.checkpoint_json,
        job.log_json,
        None if job.failure is None else job.failure.message,
    )


def _with(job: Job, contents: Contents, seals: Seals) -> Job:
    failure = job.failure
    if failure is not None and contents.message is not None:
        failure = replace(failure, message=contents.message)
    return replace(
        job,
        payload_json=contents.payload_json,
        result_json=contents.result_json,
        checkpoint_json=contents.checkpoint_json,
        log_json=contents.log_json,
        failure=failure,
        seals=seals,
    )


def _place(job: Job, field: str) -> Place:
    return Place(job.tenant, job.id, field)


def _has_seals(job: Job) -> bool:
    return (
        is_sealed(job.payload_json)
        or (job.failure is not None and is_sealed_text(job.failure.message))
        or (job.result_json is not None and is_sealed(job.result_json))
        or (job.checkpoint_json is not None and is_sealed(job.checkpoint_json))
        or (job.log_json is not None and is_sealed(job.log_json))
    )
