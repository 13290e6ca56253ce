"""Rules for the verbs of the store itself that the manager does not pass through as they are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule
from msgspec.structs import replace

from headrace import limits
from headrace.errors import LogTrimmed
from headrace.limits import Gate
from headrace.manager import JobManager
from headrace.model import DependencyKind
from headrace.stores.base import (
    GATE,
    ClaimRequest,
    Clash,
    EventQuery,
    Fence,
    Head,
    Insertion,
    JobStore,
    Kin,
    Note,
    Query,
    Record,
    Rewrite,
    Share,
)
from tests.agreement.frame import (
    Frame,
    names,
    queue_filters,
    queue_limits,
    queues,
    tag_filters,
    tenants,
    type_filters,
    workers,
)
from tests.agreement.pair import KINDS

bodies = st.sampled_from([b"1", b'{ "a": "\xc3\xa9" }', b"[]"])
gate_bodies = queue_limits.map(lambda wanted: limits.encode(Gate(wanted.for_claims)))
"""Such as the manager can read when it meets them."""
some_bytes = st.one_of(st.none(), bodies)
drifts = st.sampled_from([0, 0, 0, -1, 1])
"""How far from the stored version a writer's own is: mostly not at all."""
wishes = st.fixed_dictionaries(
    {
        "worker": workers,
        "tenant": tenants,
        "queues": queue_filters,
        "types": type_filters,
        "tags": tag_filters,
        "limit": st.integers(1, 5),
        "lease_seconds": st.sampled_from([None, 5.0]),
        "ahead_seconds": st.sampled_from([None, None, 20.0, 1e6]),
    }
)


class StoreVerbs(Frame):
    """Records, gates, claims by shares, log lines, rewrites and trims, given to both stores as they are."""

    def stores(self, call: Callable[[JobStore], Awaitable[Any]]) -> Any:
        """The common answer of both stores."""
        return self.pair.both(lambda manager: call(manager.store))

    def record(self, kind: str, name: str, drift: int = 0) -> Record:
        """As the reference holds it, or as somebody else may have read it."""
        found = self.pair.look(lambda m: m.store.records(kind, [name]))
        record = found[0] if found else Record(kind=kind, name=name)
        return replace(record, version=max(0, record.version + drift))

    def request(self, wish: dict[str, Any]) -> ClaimRequest:
        now, given = self.pair.clock.now(), dict(wish)
        ahead = given.pop("ahead_seconds", None)
        due_by = None if ahead is None else now + timedelta(seconds=ahead)
        return ClaimRequest(now=now, nonce=f"s{self.pair.step}", due_by=due_by, **given)

    @rule(name=queues, drift=drifts, body=bodies)
    def put_record(self, name: str, drift: int, body: bytes) -> None:
        record = replace(self.record("note", name, drift), body_json=body)
        self.stores(lambda store: store.put_record(record))

    @rule(queue=queues, drift=drifts, body=gate_bodies)
    def put_gate(self, queue: str, drift: int, body: bytes) -> None:
        gate = replace(self.record(GATE, queue, drift), body_json=body)
        self.stores(lambda store: store.put_record(gate))

    @rule(kind=st.sampled_from(KINDS), name=queues, drift=drifts)
    def delete_record(self, kind: str, name: str, drift: int) -> None:
        record = self.record(kind, name, drift)
        self.stores(lambda store: store.delete_record(record))

    @rule(
        kind=st.sampled_from(KINDS),
        some=st.one_of(st.none(), st.lists(st.sampled_from(["kept", "other", "nobody"]))),
    )
    def read_records(self, kind: str, some: list[str] | None) -> None:
        self.stores(lambda store: store.records(kind, some))

    @rule(wish=wishes)
    def heads(self, wish: dict[str, Any]) -> None:
        request = self.request(wish)
        self.pair.both(lambda manager: _sorted_heads(manager, request))

    @rule(
        wish=wishes,
        elsewhere=st.booleans(),
        sizes=st.lists(st.sampled_from([1, 2, 3, 0]), min_size=1, max_size=6),
        turned=st.booleans(),
        gates=st.lists(
            st.tuples(queues, drifts, gate_bodies), max_size=2, unique_by=lambda gate: gate[0]
        ),
    )
    def claim_shares(
        self,
        wish: dict[str, Any],
        elsewhere: bool,
        sizes: list[int],
        turned: bool,
        gates: list[tuple[str, int, bytes]],
    ) -> None:
        """Shares of lanes that are there, but maybe not for this request, with good and bad gates."""
        request = self.request(wish)
        anything = self.request({"worker": "w1", "limit": 5})
        heads = self.pair.look(lambda m: _sorted_heads(m, anything if elsewhere else request))
        shares = [_share(head, jobs) for head, jobs in zip(heads, sizes, strict=False)]
        given = [
            replace(self.record(GATE, queue, drift), body_json=body) for queue, drift, body in gates
        ]
        ordered = shares[::-1] if turned else shares
        answer = self.stores(lambda store: store.claim_shares(request, ordered, given))
        self.remember(answer or ())

    @rule(wish=wishes)
    def claim_all_shares(self, wish: dict[str, Any]) -> None:
        """What a fair claim does: look, read every gate, and take all there is."""
        request = self.request(wish)
        heads = self.pair.look(lambda m: _sorted_heads(m, request))
        gates = self.pair.look(lambda m: m.store.records(GATE))
        shares = [_share(head, head.jobs) for head in heads]
        self.remember(self.stores(lambda store: store.claim_shares(request, shares, gates)))

    @rule(some=st.lists(queues, max_size=3), queue=st.one_of(st.none(), queues), tenant=tenants)
    def measure(self, some: list[str], queue: str | None, tenant: str | None) -> None:
        now = self.pair.clock.now()

        async def held(manager: JobManager) -> list[Any]:
            return sorted(await manager.store.held(now, some), key=repr)

        self.pair.both(held)
        self.stores(lambda store: store.backlog(tenant=tenant, queue=queue))

    @rule(name=names, age=st.integers(0, 1), lines=bodies, progress=st.sampled_from([None, 0.5]))
    def log_lines(self, name: str, age: int, lines: bytes, progress: float | None) -> None:
        fence = Fence(name, self.token(name, age))
        note = Note(log_json=lines, progress=progress)
        self.stores(lambda store: store.annotate(fence, note, self.pair.clock.now()))

    @rule(
        some=st.lists(names, min_size=1, max_size=3, unique=True),
        drift=drifts,
        forgotten=st.sampled_from([0, 0, 1]),
        said=st.sampled_from([None, "version", "parents_max", "joins", "spawned"]),
    )
    def rely_on_kin(self, some: list[str], drift: int, forgotten: int, said: str | None) -> None:
        """An insertion of nothing, by the graph as it is, or as somebody else may have read it."""

        async def read(manager: JobManager) -> dict[str, Kin]:
            return {name: await _kin(manager.store, name, drift, forgotten) for name in some}

        kin = self.pair.look(read)
        if said is not None:
            kin = {name: Kin(**{said: getattr(one, said)}) for name, one in kin.items()}
        wanted = Insertion(jobs=(), events=(), now=self.pair.clock.now(), kin=kin)

        async def grown(manager: JobManager) -> list[str]:
            answer = await manager.store.insert(wanted)
            return sorted(answer.kin) if isinstance(answer, Clash) else []

        self.pair.both(grown)

    @rule(
        some=st.lists(names, min_size=2, max_size=6),
        drift=drifts,
        payload=some_bytes,
        result=some_bytes,
        notes=some_bytes,
        message=st.sampled_from([None, "sealed"]),
    )
    def rewrite(
        self,
        some: list[str],
        drift: int,
        payload: bytes | None,
        result: bytes | None,
        notes: bytes | None,
        message: str | None,
    ) -> None:
        stored = {job.id: job for job in self.pair.look(lambda m: m.store.find(Query()))}
        rewrites = [
            Rewrite(
                job_id=name,
                version=(stored[name].version if name in stored else 1) + drift,
                payload_json=payload,
                result_json=result if name in stored and stored[name].result_json else None,
                checkpoint_json=notes,
                log_json=notes,
                failure_message=message,
            )
            for name in some
        ]
        self.stores(lambda store: store.rewrite(rewrites))

    @rule(
        marks=st.lists(st.integers(0, 60), max_size=2),
        age=st.sampled_from([0.0, 0.0, 30.0]),
        limit=st.integers(0, 20),
        name=names,
    )
    def trim(self, marks: list[int], age: float, limit: int, name: str) -> None:
        """Up to events somewhere in the log; then whoever stopped at an event reads on, or is told."""
        before = self.pair.clock.now() - timedelta(seconds=age - 1)

        async def trimmed(manager: JobManager) -> list[Any]:
            store = manager.store
            log = await store.events(EventQuery(limit=10_000))
            upto = [log[mark].cursor for mark in marks if mark < len(log)]
            gone = await store.trim(upto, before, limit)
            rest = [await _rest(store, event.cursor) for event in log]
            return [gone, rest, await store.events(EventQuery(job_id=name))]

        self.pair.both(trimmed)


async def _rest(store: JobStore, cursor: str) -> int | None:
    """How many events follow; None: some of them are gone. (Cursors, also in errors, differ by store.)"""
    try:
        return len(await store.events(EventQuery(after=cursor, limit=10_000)))
    except LogTrimmed:
        return None


async def _kin(store: JobStore, name: str, drift: int, forgotten: int) -> Kin:
    into = await store.edges(child_id=name)
    out = await store.edges(parent_id=name)
    spawned = [job.id for job in await store.spawned(name)]
    job = (await store.get([name])).get(name)
    joins = [edge.child_id for edge in out if edge.kind is DependencyKind.FAN_IN]
    return Kin(
        version=None if job is None else job.version + drift,
        parents_max=max(0, len(into) + drift),
        joins=joins[forgotten:],
        spawned=spawned[forgotten:],
    )


def _share(head: Head, jobs: int) -> Share:
    lane = {name: getattr(head, name) for name in Share.__struct_fields__}
    return Share(**(lane | {"jobs": jobs}))


async def _sorted_heads(manager: JobManager, request: ClaimRequest) -> list[Head]:
    return sorted(await manager.store.heads(request), key=repr)
