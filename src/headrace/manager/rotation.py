"""Changing keys: what is encrypted under an old key is brought under the ring's primary key."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from headrace import envelope
from headrace.envelope import is_sealed, is_sealed_text
from headrace.errors import CannotDecrypt, InvalidKeyRing
from headrace.manager import schedule_records
from headrace.manager.context import Context
from headrace.manager.queries import cursor_at, seq_of
from headrace.manager.sealing import CHECKPOINT, ERROR, LOG, PAYLOAD, RESULT, Sealing
from headrace.model import Job
from headrace.stores.base import Query, Rewrite

BATCH_JOBS = 100
"""Contents may be megabytes each, and all of a batch are in memory at once."""
_OLDEST_FIRST = "a"


class Reencrypted(msgspec.Struct, frozen=True, kw_only=True):
    """How far what was looked at is under the primary key: jobs, and at the end of a pass schedules."""

    looked_at: int
    done: int
    """Rewritten now."""
    skipped: int
    """Held by a worker, or changed meanwhile: still to be done, in a later call."""
    unreadable: int
    """Under a key that the ring does not have, or damaged."""
    plain: int
    """Of queues that encrypt, and still with contents in the clear."""
    cursor: str | None
    """Where to go on. None: that was all."""

    @property
    def left(self) -> int:
        """Still encrypted under another key. Only when a whole pass leaves 0 may the old key go."""
        return self.skipped + self.unreadable

    def plus(self, later: Reencrypted) -> Reencrypted:
        """This and the call that went on from its cursor, together."""
        return Reencrypted(
            looked_at=self.looked_at + later.looked_at,
            done=self.done + later.done,
            skipped=self.skipped + later.skipped,
            unreadable=self.unreadable + later.unreadable,
            plain=self.plain + later.plain,
            cursor=later.cursor,
        )


async def reencrypt(
    context: Context, *, limit: int | None, cursor: str | None, seal_plain: bool
) -> Reencrypted:
    """Look at the jobs in order of submission, and rewrite those that need it."""
    if context.sealing.keys is None:
        raise InvalidKeyRing("re-encrypting needs a key ring, and there is none; nothing was done")
    after = None if cursor is None else seq_of(cursor, _OLDEST_FIRST)
    total = Reencrypted(looked_at=0, done=0, skipped=0, unreadable=0, plain=0, cursor=cursor)
    while limit is None or total.looked_at < limit:
        size = BATCH_JOBS if limit is None else min(BATCH_JOBS, limit - total.looked_at)
        query = Query(tenant=context.tenant, after_seq=after, limit=size)
        jobs = await context.bare_store.find(query)
        total = total.plus(await _renew(context, jobs, seal_plain=seal_plain))
        if len(jobs) < size:
            return total.plus(await _renew_schedules(context))
        after = jobs[-1].seq
        total = replace(total, cursor=cursor_at(jobs[-1], _OLDEST_FIRST))
    return total


async def _renew(context: Context, jobs: Sequence[Job], *, seal_plain: bool) -> Reencrypted:
    plans = [_Plan(context.sealing, job, seal_plain=seal_plain) for job in jobs]
    wanted = [plan for plan in plans if plan.rewrite is not None]
    # A job that a worker holds is left alone by the store.
    rewrites = [plan.rewrite for plan in wanted if plan.rewrite is not None]
    answers = await context.bare_store.rewrite(rewrites) if rewrites else ()
    written = [plan for plan, answer in zip(wanted, answers, strict=True) if answer]
    done = sum(not plan.unreadable for plan in written)
    return Reencrypted(
        looked_at=len(jobs),
        done=done,
        skipped=sum(not plan.unreadable for plan in wanted) - done,
        unreadable=sum(plan.unreadable for plan in plans),
        plain=sum(plan.plain for plan in plans),
        cursor=None,
    )


async def _renew_schedules(context: Context) -> Reencrypted:
    """The same for the payloads that schedules hold."""
    done = skipped = unreadable = 0
    records = await schedule_records.find_records(context)
    for record in records:
        try:
            renewed = schedule_records.renewed(context, record)
        except CannotDecrypt:
            unreadable += 1
            continue
        if renewed is not None:
            written = await context.store.put_record(renewed)
            done, skipped = done + written, skipped + (not written)
    return Reencrypted(
        looked_at=len(records),
        done=done,
        skipped=skipped,
        unreadable=unreadable,
        plain=0,
        cursor=None,
    )


class _Plan:
    """What of one job is under another key, or in the clear though its queue encrypts."""

    def __init__(self, sealing: Sealing, job: Job, *, seal_plain: bool) -> None:
        self._sealing = sealing
        self._job = job
        self._seal_plain = seal_plain
        self.unreadable = False
        self.plain = False
        fresh = {
            "payload_json": self._json(PAYLOAD, job.payload_json),
            "result_json": self._json(RESULT, job.result_json),
            "checkpoint_json": self._json(CHECKPOINT, job.checkpoint_json),
            "log_json": self._json(LOG, job.log_json),
        }
        message = None if job.failure is None else self._text(job.failure.message)
        self.rewrite: Rewrite | None = None
        if message is not None or any(value is not None for value in fresh.values()):
            self.rewrite = Rewrite(
                job_id=job.id, version=job.version, failure_message=message, **fresh
            )

    def _json(self, field: str, encoded: bytes | None) -> bytes | None:
        if encoded is None:
            return None
        body = envelope.unpack(encoded) if is_sealed(encoded) else None
        contents = self._to_seal(field, body, encoded)
        return None if contents is None else self._sealing.seal_json(self._job, field, contents)

    def _text(self, message: str) -> str | None:
        body = envelope.unpack_text(message) if is_sealed_text(message) else None
        contents = self._to_seal(ERROR, body, message.encode())
        return None if contents is None else self._sealing.seal_text(self._job, contents.decode())

    def _to_seal(self, field: str, body: envelope.Body | None, stored: bytes) -> bytes | None:
        """The contents, if they are to be sealed anew and can be. `body` None: they are in the clear."""
        assert self._sealing.keys is not None
        if body is None:
            if not self._sealing.encrypts(self._job):
                return None
            self.plain = self.plain or not self._seal_plain
            return stored if self._seal_plain else None
        if body.key == self._sealing.keys.primary:
            return None
        opened = self._sealing.contents(self._job, field, body)
        if isinstance(opened, bytes):
            return opened
        self.unreadable = True
        return None
