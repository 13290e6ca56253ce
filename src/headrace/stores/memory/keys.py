"""Idempotency keys in memory: who holds which, and until when."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from headrace.model import Job
from headrace.stores.base import KeyHold, KeyScope


class Keys:
    def __init__(self) -> None:
        self._holds: dict[KeyScope, KeyHold] = {}

    def hold(self, holds: Iterable[KeyHold]) -> None:
        for hold in holds:
            self._holds[hold.scope] = hold

    def holder(self, scope: KeyScope, now: datetime) -> str | None:
        """The id of the job that holds the key now."""
        hold = self._holds.get(scope)
        if hold is None or (hold.expires_at is not None and hold.expires_at <= now):
            return None
        return hold.job_id

    def release(self, job: Job, *, even_if_kept: bool = False) -> None:
        """Give up the job's key, if it holds one that is released when it ends."""
        if job.key is None:
            return
        scope = KeyScope(job.tenant, job.queue, job.type, job.key)
        hold = self._holds.get(scope)
        if hold and hold.job_id == job.id and (even_if_kept or hold.released_when_terminal):
            del self._holds[scope]
