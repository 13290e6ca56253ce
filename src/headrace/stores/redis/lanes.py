"""Lanes: all jobs of one tenant, queue, type, priority and limit key; each lane has a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec


class Lane(NamedTuple):
    """What a lane is called. Most have no limit key, and their names end before it."""

    tenant: str
    queue: str
    type: str
    priority: int
    limit_key: str | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Lane).decode


def pack_lane(tenant: str, queue: str, type: str, priority: int, limit_key: str | None) -> str:
    """A lane's names as one text, the same each time: the server finds its number by this."""
    names = (tenant, queue, type, int(priority))
    return _encode(names if limit_key is None else (*names, limit_key)).decode()


def read_lanes(flat: Sequence[Any]) -> dict[int, Lane]:
    """The lanes of a reply, by number."""
    return {
        int(number): _decode(names) for number, names in zip(flat[::2], flat[1::2], strict=True)
    }
