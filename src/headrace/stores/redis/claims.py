"""Leasing due jobs."""

from __future__ import annotations

import msgspec

from headrace.clock import to_us
from headrace.model import Job
from headrace.stores.base import ClaimRequest
from headrace.stores.redis.rows import length_us, read_jobs
from headrace.stores.redis.scripts import Script
from headrace.stores.redis.server import Server

_CLAIM = Script("claim")

_JOBS_PER_CALL = 1000  # a larger claim takes several calls: each holds up everyone else's

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


async def claim(server: Server, request: ClaimRequest) -> list[Job]:
    """Up to `limit` jobs in claim order; each call of the script is atomic."""
    taken: list[Job] = []
    resume: object = False
    while (left := request.limit - len(taken)) > 0:
        size = min(left, _JOBS_PER_CALL)
        reply, stopped_at = await server.write_script(_CLAIM, _request(request, size, resume))
        jobs = read_jobs(reply)
        taken += jobs
        if jobs:
            if len(jobs) < size:
                break
        elif stopped_at is None:
            break
        resume = False if stopped_at is None else _decode(stopped_at)
    return taken


def _request(request: ClaimRequest, limit: int, resume: object) -> bytes:
    seconds = request.lease_seconds
    return _encode(
        (
            to_us(request.now),
            limit,
            request.worker,
            request.nonce,
            False if seconds is None else length_us(seconds),
            False if request.tenant is None else request.tenant,
            False if request.queues is None else list(request.queues),
            False if request.types is None else list(request.types),
            list(request.tags),
            resume,
        )
    )
