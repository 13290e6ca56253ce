"""Idempotency keys: which jobs hold them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from headrace.clock import to_us
from headrace.stores.base import KeyScope
from headrace.stores.redis.connection import Server
from headrace.stores.redis.rows import pack_scope

_SCOPES_PER_CALL = 5000

# What insert.lua packs; false: the hold has no end.
_decode_hold = msgspec.msgpack.Decoder(tuple[str, int | bool, bool]).decode


async def keyed(server: Server, scopes: Sequence[KeyScope], now: datetime) -> dict[KeyScope, str]:
    """The ids of the jobs that hold these keys."""
    found: dict[KeyScope, str] = {}
    for start in range(0, len(scopes), _SCOPES_PER_CALL):
        page = scopes[start : start + _SCOPES_PER_CALL]
        packed = await server.read("HMGET", server.keys.of("keys"), *map(pack_scope, page))
        for scope, hold in zip(page, packed, strict=True):
            if hold is not None:
                job_id, expires_at, _ = _decode_hold(hold)
                if expires_at is False or expires_at > to_us(now):
                    found[scope] = job_id
    return found
