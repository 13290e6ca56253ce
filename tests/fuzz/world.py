"""A store with jobs in every state for the fuzz to name, and an innocent one that nothing may touch."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

import msgspec

from headrace import Context as PublicContext
from headrace import Cron, Every, Headrace, JobManager, JobSpec, Policies, Policy, Task
from headrace.app.application import Headrace as Application
from headrace.manager.matching import Matching
from headrace.model import Job, Lease
from headrace.retry import Constant
from tests.fuzz.values import Hostile, Made, Maker

TAG = "fuzzed"
INNOCENT = "innocent"
KEPT = 40
"""So many of the jobs that were made last are named."""
WORKER = "worker-1"


class World:
    """The jobs at hand, and what a call may be given."""

    def __init__(self, app: Headrace, manager: JobManager) -> None:
        self.app = app
        self.manager = manager
        self.made = Made()
        self._jobs: deque[Job] = deque(maxlen=KEPT)
        self._innocent: bytes = b""
        self.held: Job
        """What a handler's context is made with."""
        self._name_everything()

    @classmethod
    async def open(cls, url: str) -> World:
        app = Headrace(url, policies=POLICIES)
        _register(app)
        manager = await app.manager()
        world = cls(app, manager)
        await world._submit_innocent()
        await world.refresh(Random(0))
        return world

    async def _submit_innocent(self) -> None:
        own = self.manager.scoped(INNOCENT)
        await self.manager.pause(INNOCENT)
        await own.submit(
            JobSpec(
                type="guarded",
                id=INNOCENT,
                queue=INNOCENT,
                run_at=datetime(2999, 1, 1, tzinfo=UTC),
                payload={"kept": ["as", "it", "is"]},
                lifetime_seconds=None,
            )
        )
        self._innocent = await self._read_innocent()

    async def _read_innocent(self) -> bytes:
        job = await self.manager.scoped(INNOCENT).get(INNOCENT)
        assert (
            len(await self.manager.events(job_id=INNOCENT)) <= 1
        )  # a trim may have taken the first
        return msgspec.json.encode(msgspec.structs.replace(job, seals=None))

    async def check(self) -> None:
        """The store works, and the innocent job is as it was. Raises AssertionError."""
        assert await self._read_innocent() == self._innocent, "the innocent job was touched"
        manager = await self.app.manager()
        (job,) = (await manager.submit_many([JobSpec(type="after", queue="after")])).jobs
        async with asyncio.timeout(10):
            while not (claimed := await manager.claim("after", queues=["after"])):
                await asyncio.sleep(0.01)  # its limits may be on their way out
        assert [one.id for one in claimed] == [job.id]
        await manager.complete(job.id, claimed[0].token, {"ok": True})
        assert (await manager.get(job.id)).result == {"ok": True}

    async def refresh(self, dice: Random) -> None:
        """New jobs in place of those that the last calls have used up."""
        self.manager = await self.app.manager()
        specs = [
            JobSpec(type=dice.choice(("mail", "add", "report")), queue="fuzzed", tags=[TAG])
            for _ in range(6)
        ]
        self._jobs.extend((await self.manager.submit_many(specs)).jobs)
        self._jobs.extend(await self.manager.claim(WORKER, queues=["fuzzed"], limit=3))

    async def renew(self, dice: Random) -> None:
        """As `refresh`, and another held job: what a call has changed must not stand for long."""
        await self.manager.resume("fuzzed")
        await self.manager.resume("held")
        for queue in ("fuzzed", "held", "after"):
            await self.manager.remove_limits(queue)
        await self.refresh(dice)
        self.held = await self._leased()

    async def _leased(self) -> Job:
        """A job for the context of a handler."""
        spec = JobSpec(type="add", queue="held", payload={"one": 1, "other": 2}, lease_seconds=3600)
        await self.manager.submit(spec)
        (job,) = await self.manager.claim(WORKER, queues=["held"])
        return job

    def _name_everything(self) -> None:
        names: dict[str, Callable[[Random], Any]] = {
            **dict.fromkeys(("job_id", "id", "parent_id"), self._id),
            **dict.fromkeys(("ids", "job_ids"), lambda dice: [self._id(dice) for _ in range(2)]),
            "job": lambda dice: dice.choice((self._id(dice), self._job(dice))),
            **dict.fromkeys(("token", "lease_token"), self._token),
            **dict.fromkeys(("queue", "queues"), _chosen("fuzzed", "mail", ["fuzzed", "held"])),
            **dict.fromkeys(("worker", "assignee_id", "worker_id"), _chosen(WORKER, "worker-2")),
            **dict.fromkeys(("tags",), _chosen([TAG], (), {"a": 1}, ["other"])),
            **dict.fromkeys(("tenant",), _chosen("default", None, "acme")),
            "after": _chosen("", (), []),
            "cursor": _chosen(None, "", "1", "a1"),
            "limit": _chosen(1, 10, 100),
            **dict.fromkeys(("timeout", "idle_seconds", "look_seconds"), _chosen(0.001, 0.01)),
            "url": _chosen("memory:", "memory:?a=1", "sqlite:///", "nothing://x"),
            "when": lambda dice: dice.choice((Cron("0 3 * * *"), Every(60))),
            "callback": lambda dice: dice.choice((None, self.app.tasks["report"], _spec(dice))),
            "task": lambda dice: dice.choice(("add", "report", self.app.tasks["add"])),
            "function": _chosen(_function, _async_function),
            "store": _chosen(_stores_nothing),
            "specs": lambda dice: [self._spec(dice) for _ in range(dice.choice((0, 1, 2)))],
            "decide": _chosen(lambda job: job),
            "place": _chosen(("default", "a", "payload")),
            "path": _chosen("/nowhere/keys", "."),
            **dict.fromkeys(("body", "payload"), _chosen(b"{}", {"a": 1}, None)),
        }
        self.made.by_name = names
        self.made.by_kind = {
            JobSpec: self._spec,
            Job: self._job,
            Lease: lambda dice: Lease(self._id(dice), self._token(dice)),
            Task: lambda dice: dice.choice(list(self.app.tasks.values())),
            Application: lambda _: self.app,
            JobManager: lambda _: self.manager,
            PublicContext: lambda _: None,
            Matching: self._matching,
        }

    def _spec(self, dice: Random) -> Any:
        """Half of them as they should be, half with anything in any field."""
        if dice.random() < 0.5:
            return _spec(dice)
        return Maker(dice, self.made).struct(JobSpec, 1)

    def _matching(self, dice: Random) -> Any:
        """Anything, but of these queues: what matches every job would rightly match the innocent one."""
        queues = dice.choice(
            (["fuzzed"], ["fuzzed", "held"], [None], [b"a"], "fuzzed", 5, [Hostile()])
        )
        made = Maker(dice, self.made).struct(Matching, 1)
        return None if made is None else msgspec.structs.replace(made, queues=queues)

    def _job(self, dice: Random) -> Job:
        return dice.choice(self._jobs)

    def _id(self, dice: Random) -> str:
        return dice.choice((self._job(dice).id, self._job(dice).id, "nobody"))

    def _token(self, dice: Random) -> str:
        return dice.choice((self._job(dice).token or "1.none", "9.made-up"))


POLICIES = Policies(default=Policy(lease_seconds=60.0, backoff=Constant(0.01, jitter=False)))


def _spec(dice: Random) -> JobSpec:
    return JobSpec(type=dice.choice(("mail", "add")), queue="fuzzed", tags=[TAG])


def _chosen(*values: Any) -> Callable[[Random], Any]:
    return lambda dice: dice.choice(values)


def _function(one: int = 1, other: int = 2) -> int:
    return one + other


async def _async_function(name: str = "") -> str:
    return name


async def _stores_nothing(specs: object) -> tuple[Job, ...]:
    return ()


def _register(app: Headrace) -> None:
    @app.task
    async def add(one: int, other: int = 2) -> int:
        return one + other

    @app.task(queue="mail", unique=True)
    async def report(job: str = "", batch: str = "") -> str:
        return job + batch

    assert set(app.tasks) == {"add", "report"}
