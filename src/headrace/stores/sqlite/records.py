"""Records: small named documents, each replaced only by who has read its present version."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.stores.base import Record
from headrace.stores.sqlite.session import Snapshot, Transaction
from headrace.stores.sqlite.sql import json_list, query

_ALL = query("records")
_NAMED = query("records_named")
_VERSION = query("record_version")
_PUT = query("record_put")
_DELETE = query("record_delete")


def find(view: Snapshot, kind: str, names: Sequence[str] | None) -> list[Record]:
    if names is None:
        rows = view.connection.execute(_ALL, (kind,)).fetchall()
    else:
        wanted = json_list(dict.fromkeys(names))
        rows = sorted(view.connection.execute(_NAMED, (wanted, kind)).fetchall())
    return [
        Record(kind=kind, name=name, version=version, body_json=body)
        for name, version, body in rows
    ]


def put_all(tx: Transaction, records: Sequence[Record]) -> bool:
    """Store them all with their next versions, if each is still as it was read."""
    if not all(_is_current(tx, record) for record in records):
        return False
    for record in records:
        tx.connection.execute(
            _PUT, (record.kind, record.name, record.version + 1, record.body_json)
        )
    return True


def delete(tx: Transaction, record: Record) -> bool:
    key = (record.kind, record.name, record.version)
    return tx.connection.execute(_DELETE, key).rowcount > 0


def _is_current(view: Snapshot, record: Record) -> bool:
    row = view.connection.execute(_VERSION, (record.kind, record.name)).fetchone()
    return record.version == (0 if row is None else row[0])
