"""A server as a store, as far as the manager's own rules need one: reading jobs and the log, and waiting.

The verbs that write are not the store's over HTTP but the manager's (`headrace.client.manager`): the server
has a manager of its own, which holds the rules and does not leave them to its callers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NoReturn

import msgspec

from headrace.api import administration, events, jobs, probes
from headrace.api import queues as api
from headrace.client.transport import Transport
from headrace.errors import NotOverHttp
from headrace.event_record import EventRecord
from headrace.model import Event, Job
from headrace.stores.base import (
    Capabilities,
    EventQuery,
    Finding,
    Health,
    Tally,
)

LOOK_UP_JOBS = 1000
EVENTS_MAX = 1000
WAIT_SECONDS_MAX = 30.0
_SAME = tuple(
    name
    for name in jobs.JobAnswer.__struct_fields__
    if name
    not in (
        "payload",
        "result",
        "checkpoint",
        "log",
        "backoff",
        "contents",
        "payload_bytes",
        "result_bytes",
    )
)
_SAME_OF_EVENTS = tuple(name for name in EventRecord.__struct_fields__ if name != "detail")


def job_of(answer: jobs.JobAnswer, token: str | None = None) -> Job:
    """The job as the server sees it. Nobody but its holder is told a lease token."""
    return Job(
        **{name: getattr(answer, name) for name in _SAME},
        payload_json=bytes(answer.payload),
        result_json=None if answer.result_bytes is None else bytes(answer.result),
        checkpoint_json=_unless_null(answer.checkpoint),
        log_json=_unless_null(answer.log),
        backoff_json=_unless_null(answer.backoff),
        token=token,
    )


def _unless_null(raw: msgspec.Raw) -> bytes | None:
    encoded = bytes(raw)
    return None if encoded == b"null" else encoded


def event_of(record: EventRecord) -> Event:
    return Event(
        **{name: getattr(record, name) for name in _SAME_OF_EVENTS},
        detail_json=_unless_null(record.detail),
    )


class RemoteStore:
    """What a `JobManager` reads, asked of a server. Every other verb raises InvalidInput."""

    capabilities = Capabilities(name="http", durable=True, shared=True, looks_after_itself=True)

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def close(self) -> None:
        await self.transport.close()

    async def now(self) -> datetime:
        return (await self.transport.ask(probes.TIME, probes.TimeAnswer)).at

    async def diagnose(self) -> Sequence[Finding]:
        found = await self.transport.ask(administration.DOCTOR, administration.DoctorAnswer)
        return [
            Finding(Health(one.health), one.what, one.value, one.advice) for one in found.findings
        ]

    async def get(self, ids: Sequence[str]) -> Mapping[str, Job]:
        found: dict[str, Job] = {}
        for start in range(0, len(ids), LOOK_UP_JOBS):
            body = jobs.LookUpBody(ids=tuple(ids[start : start + LOOK_UP_JOBS]))
            answer = await self.transport.ask(jobs.LOOK_UP, jobs.JobsAnswer, body=body)
            found |= {one.id: job_of(one) for one in answer.jobs}
        return found

    async def count(
        self,
        now: datetime,  # noqa: ARG002 - the server's own time counts
        *,
        tenant: str | None = None,  # noqa: ARG002 - the token says whose
        queues: Sequence[str] | None = None,
        tags: Sequence[str] = (),
    ) -> Sequence[Tally]:
        query = api.StatsQuery(queue=None if queues is None else tuple(queues), tag=tuple(tags))
        found = await self.transport.ask(api.STATS, api.StatsAnswer, query=query)
        return [Tally(**msgspec.structs.asdict(one)) for one in found.tallies]

    async def events(self, query: EventQuery) -> Sequence[Event]:
        found = await self._events(query, 0.0)
        return [event_of(one) for one in found.events]

    async def _events(self, query: EventQuery, wait_seconds: float) -> jobs.EventsAnswer:
        asked = events.LogQuery(
            after=query.after or None,
            job=None if query.job_id is None else (query.job_id,),
            limit=min(query.limit, EVENTS_MAX),
            wait_seconds=wait_seconds,
        )
        return await self.transport.ask(
            events.EVENTS, jobs.EventsAnswer, query=asked, wait_seconds=wait_seconds
        )

    async def tail(self) -> str:
        asked = events.LogQuery(after="end")
        return (await self.transport.ask(events.EVENTS, jobs.EventsAnswer, query=asked)).cursor

    async def wait(self, after: str, timeout_seconds: float) -> None:
        await self._events(
            EventQuery(after=after, limit=1), min(max(timeout_seconds, 0.0), WAIT_SECONDS_MAX)
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotOverHttp(name)
