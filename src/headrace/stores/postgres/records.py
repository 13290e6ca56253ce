"""Records: small named documents, each replaced only by who has read its present version."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from headrace.stores.base import Record
from headrace.stores.postgres.errors import Violated
from headrace.stores.postgres.session import Session


async def find(session: Session, kind: str, names: Sequence[str] | None) -> list[Record]:
    rows = await session.read("records", kind, None if names is None else list(names))
    found = [
        Record(kind=kind, name=name, version=version, body_json=body)
        for name, version, body in rows
    ]
    return sorted(found, key=attrgetter("name"))  # by code point, whatever the database sorts by


async def put(session: Session, record: Record) -> bool:
    try:
        ((stored,),) = await session.write(
            "put_record", record.kind, record.name, record.version, record.body_json
        )
    except Violated:
        return False
    return bool(stored)


async def delete(session: Session, record: Record) -> bool:
    return bool(await session.write("delete_record", record.kind, record.name, record.version))
