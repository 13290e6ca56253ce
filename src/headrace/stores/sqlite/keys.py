"""Idempotency keys: who holds one, holding, giving up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from headrace.clock import to_us
from headrace.model import Job
from headrace.stores.base import KeyHold, KeyScope
from headrace.stores.sqlite.bulk import Bulk
from headrace.stores.sqlite.rows import us_or_none
from headrace.stores.sqlite.session import Snapshot, Transaction
from headrace.stores.sqlite.sql import query

_HOLDERS = query("key_holders")
_HOLD = Bulk("key_hold")
_RELEASE = Bulk("key_release")
_REMOVE = Bulk("key_remove")


def holders(view: Snapshot, scopes: Sequence[KeyScope], now: datetime) -> dict[KeyScope, str]:
    """The ids of the jobs that hold these keys."""
    if not scopes:
        return {}
    wanted = msgspec.json.encode(
        [[scope.tenant, scope.queue, scope.type, scope.key] for scope in scopes]
    ).decode()
    rows = view.connection.execute(_HOLDERS, {"scopes": wanted, "now": to_us(now)}).fetchall()
    return {scopes[position]: job_id for position, job_id in rows}


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
