"""Deleting jobs: all or, when one has moved on, none."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.stores.redis.connection import Server
from headrace.stores.redis.scripts import Script

_DELETE = Script("delete")


async def delete(server: Server, jobs: Mapping[str, int]) -> bool:
    if not jobs:
        return True
    return bool(await server.write_script(_DELETE, len(jobs), *jobs.keys(), *jobs.values()))
