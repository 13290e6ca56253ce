"""Small named documents, each replaced only by who has read its present version."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from headrace.stores.base import Record
from headrace.stores.redis.connection import Server
from headrace.stores.redis.scripts import Script

_PUT_RECORD = Script("put_record")
_DELETE_RECORD = Script("delete_record")

_NAMES_PER_CALL = 5000
_VERSION = Struct(">Q")  # then the body; lua/shared/records.lua has the same


async def find(server: Server, kind: str, names: Sequence[str] | None) -> list[Record]:
    key = server.keys.records(kind)
    packed: dict[str, bytes | None]
    if names is None:
        flat = await server.read("HGETALL", key)
        packed = {name.decode(): value for name, value in zip(flat[::2], flat[1::2], strict=True)}
    else:
        packed = {}
        for start in range(0, len(names), _NAMES_PER_CALL):
            page = names[start : start + _NAMES_PER_CALL]
            packed |= zip(page, await server.read("HMGET", key, *page), strict=True)
    return [_read(kind, name, value) for name, value in sorted(packed.items()) if value is not None]


async def put(server: Server, record: Record) -> bool:
    arguments = (record.kind, record.name, record.version, record.body_json)
    return bool(await server.write_script(_PUT_RECORD, *arguments))


async def delete(server: Server, record: Record) -> bool:
    arguments = (record.kind, record.name, record.version)
    return bool(await server.write_script(_DELETE_RECORD, *arguments))


def _read(kind: str, name: str, packed: bytes) -> Record:
    (version,) = _VERSION.unpack_from(packed)
    return Record(kind=kind, name=name, version=version, body_json=packed[_VERSION.size :])
