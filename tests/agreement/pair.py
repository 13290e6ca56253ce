"""Two managers, one on the memory store and one on the store under test, that must never differ.

Whatever is called on both must answer the same and leave the same rows, edges, tallies and events. What is
random in production (ids, tokens, jitter) is drawn from equal sources here.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Any
from unittest import mock

import msgspec
from msgspec.structs import replace

from headrace.clock import EPOCH, ManualClock
from headrace.connect import connect
from headrace.errors import HeadraceError
from headrace.manager import JobManager
from headrace.manager.admission import ADMISSION
from headrace.model import Event, Job
from headrace.policy import Policies
from headrace.stores.base import GATE, ClaimRequest, EventQuery, KeyScope, Query

Call = Callable[[JobManager], Awaitable[Any]]

KINDS = [GATE, ADMISSION, "note"]
"""Of records."""
SCOPES = [
    KeyScope(*names)
    for names in itertools.product(
        ["default", "acme"], ["default", "kept", "other"], ["t1", "t2"], ["k1", "k2"]
    )
]
"""Of every key that the machine may use."""


class Pair:
    """The reference and the subject, on one clock that stands still."""

    def __init__(self, url: str, policies: Policies, *, seed: int = 0) -> None:
        self.clock = ManualClock()
        self._runner = asyncio.Runner()
        self._serial = 0
        self.step = 0
        self.reference, self.subject = (
            self._runner.run(
                connect(where, policies=policies, clock=self.clock, dice=random.Random(seed))
            )
            for where in ("memory:", url)
        )

    def close(self) -> None:
        for manager in (self.reference, self.subject):
            self._runner.run(manager.close())
        self._runner.close()

    def both(self, call: Call) -> Any:
        """The common answer of the call on both; afterwards both hold the same."""
        self.step += 1
        wanted = self._answer(self.reference, call)
        answer = self._answer(self.subject, call)
        assert plain(answer) == plain(wanted)
        self._compare()
        return wanted

    def look(self, call: Call) -> Any:
        """What the reference alone says, to build the next step from."""
        return self._runner.run(_as_coroutine(call(self.reference)))

    def _answer(self, manager: JobManager, call: Call) -> Any:
        self._serial = self.step * 1000
        with (
            mock.patch("headrace.spec.new_id", self._new_id),
            mock.patch("headrace.manager.retention.new_id", self._new_id),
            mock.patch("headrace.manager.leases.secrets.token_hex", return_value=f"n{self.step}"),
        ):
            try:
                return self._runner.run(_as_coroutine(call(manager)))
            except HeadraceError as error:
                return type(error).__name__, str(error)

    def _new_id(self) -> str:
        self._serial += 1
        return f"id-{self._serial}"

    def _compare(self) -> None:
        wanted = self._runner.run(whole(self.reference))
        found = self._runner.run(whole(self.subject))
        for name, part in wanted.items():
            assert found[name] == part, name


async def _as_coroutine(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


async def whole(manager: JobManager) -> dict[str, Any]:
    """Everything a store holds, without what a store may number as it likes."""
    store, now = manager.store, manager.clock.now()
    jobs = await store.find(Query(limit=10_000))
    ids = [job.id for job in jobs]
    queues = sorted({job.queue for job in jobs})
    everything = ClaimRequest(worker="w", now=now, limit=3, nonce="n")
    return {
        "jobs": [plain(job) for job in jobs],
        "tallies": plain(list(await store.count(now))),
        "edges": [plain(list(await store.edges(child_id=job_id))) for job_id in ids],
        "edges from": [plain(list(await store.edges(parent_id=job_id))) for job_id in ids],
        "spawned": [plain(list(await store.spawned(job_id))) for job_id in ids],
        "keyed": sorted(plain(dict(await store.keyed(SCOPES, now))).items(), key=str),
        "workers": sorted(plain(list(await store.workers(EPOCH))), key=str),
        "joins": plain(dict(await store.joins(ids))),
        "unseen": sorted(plain(list(await store.unseen(1000))), key=str),
        "lapsed": [job.id for job in await store.lapsed(now, 1000)],
        "outlived": [job.id for job in await store.outlived(now, 1000)],
        "pauses": plain(list(await store.pauses())),
        "records": [plain(list(await store.records(kind))) for kind in KINDS],
        "heads": sorted(plain(list(await store.heads(everything))), key=str),
        "held": sorted(plain(list(await store.held(now, queues))), key=str),
        "backlog": plain(await store.backlog()),
        "events": [plain(event) for event in await store.events(EventQuery(limit=10_000))],
    }


def plain(value: Any) -> Any:
    """The value with store-given numbers taken out."""
    match value:
        case Job():
            return replace(value, seq=0)
        case Event():
            return replace(value, seq=0, cursor="")
        case HeadraceError():
            return type(value).__name__, str(value)
        case msgspec.Struct():
            fields = {name: plain(getattr(value, name)) for name in value.__struct_fields__}
            return {"type": type(value).__name__} | {
                k: v for k, v in fields.items() if k != "cursor"
            }
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value
