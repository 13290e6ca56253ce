"""Random commands, step by step, against both stores of a pair."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from headrace.errors import PermanentError
from headrace.limits import QueueLimits
from headrace.manager import Completed, Failed, Released
from headrace.model import Category, Failure, Lease, State
from headrace.policy import CancelMode
from headrace.spec import JobSpec
from tests.agreement.frame import (
    names,
    queue_filters,
    queue_limits,
    queues,
    specs,
    tag_filters,
    tags,
    tenants,
    type_filters,
    workers,
)
from tests.agreement.store_verbs import StoreVerbs


class Agreement(StoreVerbs):
    """All rules: here what a manager does, beneath it what its store can do besides."""

    @rule(spec=specs)
    def submit_one(self, spec: JobSpec) -> None:
        self.submit(spec)

    @rule(batch=st.lists(specs, max_size=4), tenant=tenants)
    def submit_many(self, batch: list[JobSpec], tenant: str | None) -> None:
        self.scoped(tenant, "submit_many", batch)

    @rule(
        worker=workers,
        tenant=tenants,
        asked=queue_filters,
        types=type_filters,
        wanted=tag_filters,
        limit=st.integers(1, 4),
    )
    def claim(
        self,
        worker: str,
        tenant: str | None,
        asked: list[str] | None,
        types: list[str] | None,
        wanted: list[str],
        limit: int,
    ) -> None:
        answer = self.scoped(
            tenant, "claim", worker, queues=asked, types=types, tags=wanted, limit=limit
        )
        self.remember(answer)

    @rule(
        worker=workers,
        tenant=tenants,
        asked=queue_filters,
        slots=st.sampled_from([None, 1, 50]),
        busy=st.sampled_from([None, 0, 50, -1]),
    )
    def announce(
        self,
        worker: str,
        tenant: str | None,
        asked: list[str] | None,
        slots: int | None,
        busy: int | None,
    ) -> None:
        self.scoped(tenant, "announce", worker, queues=asked, slots=slots, busy=busy)

    @rule(name=names, age=st.integers(0, 1), tenant=tenants)
    def complete(self, name: str, age: int, tenant: str | None) -> None:
        self.scoped(tenant, "complete", name, self.token(name, age), {"done": name})

    @rule(name=names, how=st.sampled_from(["temporary", "permanent", "later", "at once"]))
    def fail(self, name: str, how: str) -> None:
        token = self.token(name, 0)
        when = {"later": 70.0, "at once": 0.0}.get(how)
        error: str | Exception = PermanentError("broken", code="E") if how == "permanent" else how
        self.pair.both(lambda m: m.fail(name, token, error, retry_after=when))

    @rule(name=names)
    def unfenced(self, name: str) -> None:
        self.pair.both(lambda m: m.complete(name, None))

    @rule(name=names, seconds=st.sampled_from([0.0, 50.0]))
    def snooze(self, name: str, seconds: float) -> None:
        self.pair.both(lambda m: m.snooze(name, self.token(name, 0), seconds=seconds))

    @rule(name=names, seconds=st.sampled_from([None, -30.0, 0.0, 40.0]))
    def reschedule(self, name: str, seconds: float | None) -> None:
        when = None if seconds is None else self.pair.clock.now() + timedelta(seconds=seconds)
        self.pair.both(lambda m: m.reschedule(name, when))

    @rule(some=st.lists(names, min_size=1, max_size=5, unique=True))
    def settle(self, some: list[str]) -> None:
        made = (Completed, Released, Failed)
        extra: list[dict[str, Any]] = [
            {"result": 7},
            {},
            {"failure": Failure("no", Category.TIMEOUT)},
        ]
        outcomes = [
            made[n % 3](job_id=name, token=self.token(name, 0), **extra[n % 3])
            for n, name in enumerate(some)
        ]
        self.pair.both(lambda m: m.settle(outcomes))

    @rule(
        some=st.lists(names, min_size=1, max_size=5, unique=True),
        seconds=st.sampled_from([30.0, 5.0, None]),
    )
    def heartbeat(self, some: list[str], seconds: float | None) -> None:
        leases = [Lease(name, self.token(name, 0), seconds) for name in some]
        self.pair.both(lambda m: m.heartbeat(leases))

    @rule(name=names, value=st.sampled_from([0.25, 1.0]))
    def note(self, name: str, value: float) -> None:
        self.pair.both(lambda m: m.progress(name, self.token(name, 0), value, "so far"))
        self.pair.both(lambda m: m.checkpoint(name, self.token(name, 0), {"at": value}))

    @rule(name=names, batch=st.lists(specs, min_size=1, max_size=2))
    def spawn(self, name: str, batch: list[JobSpec]) -> None:
        self.pair.both(lambda m: m.spawn(name, self.token(name, 0), batch))

    @rule(
        name=names,
        tenant=tenants,
        said=st.sampled_from(
            [
                {"priority": 0},
                {"priority": 4},
                {"priority": 2, "tags": ["x", "z"]},
                {"tags": []},
                {"add_tags": ["y"], "remove_tags": ["x"]},
                {"correlation_id": "c", "callback_url": "https://example.org/é"},
                {"correlation_id": None, "callback_url": None},
            ]
        ),
    )
    def update(self, name: str, tenant: str | None, said: dict[str, Any]) -> None:
        self.scoped(tenant, "update", name, **said)

    @rule(
        some=st.lists(names, max_size=2, unique=True),
        wanted=tags,
        mode=st.sampled_from([None, *CancelMode]),
        dry_run=st.booleans(),
        tenant=tenants,
    )
    def cancel(
        self,
        some: list[str],
        wanted: list[str],
        mode: CancelMode | None,
        dry_run: bool,
        tenant: str | None,
    ) -> None:
        self.scoped(tenant, "cancel", some, tags=wanted, mode=mode, dry_run=dry_run)

    @rule(name=names, was_executing=st.booleans())
    def acknowledge(self, name: str, was_executing: bool) -> None:
        token = self.token(name, 0)
        self.pair.both(lambda m: m.acknowledge_cancel(name, token, was_executing=was_executing))

    @rule(name=names)
    def abandon(self, name: str) -> None:
        self.pair.both(lambda m: m.abandon(name))

    @rule(worker=workers)
    def expire_worker(self, worker: str) -> None:
        self.pair.both(lambda m: m.expire_worker(worker))

    @rule(tenant=tenants)
    def reap(self, tenant: str | None) -> None:
        self.scoped(tenant, "reap")

    @rule()
    def maintain(self) -> None:
        self.pair.both(lambda m: m.maintain())

    @rule()
    def reset(self) -> None:
        self.pair.both(lambda m: m.reset_running())

    @rule(some=st.lists(names, max_size=2, unique=True), wanted=tags)
    def delete(self, some: list[str], wanted: list[str]) -> None:
        self.pair.both(lambda m: m.delete(some, tags=wanted))

    @rule(name=names)
    def redrive(self, name: str) -> None:
        self.pair.both(lambda m: m.redrive([name]))

    @rule(queue=queues, tenant=tenants)
    def pause(self, queue: str, tenant: str | None) -> None:
        self.scoped(tenant, "pause", queue)

    @rule(queue=queues, tenant=tenants)
    def resume(self, queue: str, tenant: str | None) -> None:
        self.scoped(tenant, "resume", queue)

    @rule(queue=queues, limits=queue_limits)
    def set_limits(self, queue: str, limits: QueueLimits) -> None:
        self.pair.both(lambda m: m.set_limits(queue, limits))

    @rule(queue=queues)
    def remove_limits(self, queue: str) -> None:
        self.pair.both(lambda m: m.remove_limits(queue))
        self.pair.both(lambda m: m.limits())

    @rule(seconds=st.sampled_from([0.000001, 1.0, 29.0, 45.0, 400.0]))
    def wait(self, seconds: float) -> None:
        self.pair.clock.advance(seconds)

    @rule(
        name=names,
        tenant=tenants,
        asked=st.one_of(st.none(), st.lists(queues, max_size=2)),
        wanted=tags,
        states=st.one_of(st.none(), st.lists(st.sampled_from(State), max_size=3)),
        newest_first=st.booleans(),
    )
    def read(
        self,
        name: str,
        tenant: str | None,
        asked: list[str] | None,
        wanted: list[str],
        states: list[State] | None,
        newest_first: bool,
    ) -> None:
        self.scoped(tenant, "get", name)
        self.scoped(tenant, "explain", name)
        self.scoped(tenant, "stats", queues=asked, tags=wanted)
        self.scoped(
            tenant,
            "find",
            queues=asked,
            tags=wanted,
            states=states,
            newest_first=newest_first,
            limit=3,
        )
        self.scoped(tenant, "events", job_id=name)
