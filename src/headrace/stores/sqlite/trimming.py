"""Trimming the log: its oldest events go, and with them the way to deleted jobs that have no other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from headrace.clock import to_us
from headrace.stores.sqlite import log
from headrace.stores.sqlite.session import Transaction
from headrace.stores.sqlite.sql import query

_LAST = query("trim_last")
_DELETED = query("trim_deleted")
_EVENTS = query("trim_events")


def trim(tx: Transaction, upto: Sequence[str], before: datetime, limit: int) -> int:
    bounds = {
        "upto": min(map(log.position, upto), default=log.tail(tx)),
        "before": to_us(before),
        "limit": max(limit, 0),
    }
    (last,) = tx.connection.execute(_LAST, bounds).fetchone()
    if last is None:
        return 0
    tx.connection.execute(_DELETED, {"last": last})
    return tx.connection.execute(_EVENTS, {"last": last}).rowcount
