"""Idempotency keys: holding them, giving them up."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.model import Job
from headrace.stores.base import KeyHold
from headrace.stores.sqlite.bulk import Bulk
from headrace.stores.sqlite.rows import us_or_none
from headrace.stores.sqlite.session import Transaction

_HOLD = Bulk("key_hold")
_RELEASE = Bulk("key_release")
_REMOVE = Bulk("key_remove")


def hold(tx: Transaction, holds: Iterable[KeyHold]) -> None:
    _HOLD.run(
        tx.connection,
        [
            (
                hold.scope.tenant,
                hold.scope.queue,
                hold.scope.type,
                hold.scope.key,
                hold.job_id,
                us_or_none(hold.expires_at),
                int(hold.released_when_terminal),
            )
            for hold in holds
        ],
    )


def release(tx: Transaction, ended: Iterable[Job]) -> None:
    """Give up the keys of jobs that have ended, where they are released by that."""
    _RELEASE.run(tx.connection, _holders_of(ended))


def remove(tx: Transaction, deleted: Iterable[Job]) -> None:
    _REMOVE.run(tx.connection, _holders_of(deleted))


def _holders_of(jobs: Iterable[Job]) -> list[tuple[str, str, str, str, str]]:
    return [
        (job.tenant, job.queue, job.type, job.key, job.id) for job in jobs if job.key is not None
    ]
