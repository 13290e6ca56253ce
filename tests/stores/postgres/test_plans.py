"""How PostgreSQL goes about the hot statements, on a backlog of fifty thousand: by the index meant for each.

The plans are those that really ran, nested in the functions, as the server's auto_explain reports them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from headrace.clock import StoreClock
from headrace.manager import Completed, JobManager
from headrace.model import State, new_id
from headrace.spec import JobSpec
from headrace.stores.base import EventQuery, Head, Query, Record, Rewrite, Share
from headrace.stores.postgres import PostgresStore
from tests.stores.postgres import backlog, held
from tests.stores.postgres.jobs import draft, request
from tests.stores.postgres.server import Schemas, with_options, without_schema

JOBS = 50_000
LOUD = (
    "LOAD 'auto_explain'",
    "SET auto_explain.log_min_duration = 0",
    "SET auto_explain.log_nested_statements = on",
    "SET auto_explain.log_analyze = on",
    "SET auto_explain.log_timing = off",
    "SET auto_explain.log_buffers = on",
    "SET auto_explain.log_format = 'json'",
    "SET auto_explain.log_level = 'notice'",
)
KIND = "not a gate"
"""A gate would make the manager claim by shares, too."""
LANE = ("tenant", "queue", "type", "priority", "limit_key")
BIG = frozenset({"jobs", "bodies", "events", "ready_tags", "job_tags"})


class Plans:
    """A manager whose one connection tells every plan it runs."""

    def __init__(self, manager: JobManager, store: PostgresStore, url: str) -> None:
        self.url = without_schema(url)
        self.manager = manager
        self.store = store
        self._heard: list[str] = []

    @classmethod
    async def on(cls, url: str) -> Plans:
        store = await PostgresStore.open(with_options(url, pool_size="1"))
        plans = cls(JobManager(store, clock=StoreClock(await store.now())), store, url)
        async with store._pool.connection() as connection:
            for statement in LOUD:
                await connection.execute(statement)
            connection.add_log_listener(lambda _, said: plans._heard.append(said.message))
        return plans

    async def of(self, call: Callable[[], Awaitable[Any]]) -> list[dict[str, Any]]:
        """Every node of every plan that the call ran."""
        self._heard.clear()
        await call()
        nodes: list[dict[str, Any]] = []
        for said in self._heard:
            if said.startswith("duration"):
                ran = json.loads(said[said.index("{") :])
                if "typeinfo" not in ran["Query Text"]:  # the driver, learning a type
                    nodes += _nodes(ran["Plan"])
        return nodes


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def indexes(nodes: list[dict[str, Any]]) -> set[str]:
    return {node["Index Name"] for node in nodes if "Index Name" in node}


def walked(nodes: list[dict[str, Any]]) -> set[str]:
    """Large tables that were read whole."""
    return {
        node["Relation Name"]
        for node in nodes
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] in BIG
    }


def most_rows(nodes: list[dict[str, Any]]) -> float:
    """The most that any step of any plan handled, whether it passed them on or threw them away."""
    return max(
        float(node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
        * max(float(node["Actual Loops"]), 1)
        for node in nodes
    )


def most_loops(nodes: list[dict[str, Any]]) -> float:
    """How often the busiest step of any plan was begun."""
    return max(float(node["Actual Loops"]) for node in nodes)


@pytest.fixture(scope="module", params=["as it is", "analysed"])
def filled(request: pytest.FixtureRequest, postgres_schemas: Schemas) -> Iterator[str]:
    """Autovacuum may or may not have come by: plans must not depend on it."""
    url = postgres_schemas.take()
    asyncio.run(_fill(url, analyze=request.param == "analysed"))
    yield url
    asyncio.run(postgres_schemas.give_back(url))


async def _fill(url: str, *, analyze: bool) -> None:
    store = await PostgresStore.open(url)
    await backlog.fill(store, JOBS, rare_every=1000, analyze=False)
    await backlog.fill(store, JOBS // 5, priority=0, due="1 days", analyze=False)
    await backlog.fill(store, JOBS // 5, queue="other", priority=1, analyze=analyze)
    await store.close()


@pytest.fixture
async def plans(filled: str) -> AsyncIterator[Plans]:
    opened = await Plans.on(filled)
    yield opened
    await opened.manager.close()


@pytest.mark.parametrize("limit", [1, 100])
async def test_a_claim_probes(plans: Plans, limit: int) -> None:
    nodes = await plans.of(lambda: plans.manager.claim("w", queues=["default"], limit=limit))
    assert "jobs_ready" in indexes(nodes)
    assert not walked(nodes)
    assert most_rows(nodes) <= 2 * limit + 40


@pytest.mark.parametrize("limit", [1, 10])
async def test_a_claim_by_a_rare_tag_probes(plans: Plans, limit: int) -> None:
    nodes = await plans.of(lambda: plans.manager.claim("w", tags=[backlog.RARE], limit=limit))
    assert "ready_tags_pkey" in indexes(nodes)
    assert not walked(nodes)
    assert most_rows(nodes) <= 4 * limit + 40


async def test_two_tags_are_led_by_the_rarer(plans: Plans) -> None:
    nodes = await plans.of(
        lambda: plans.manager.claim("w", tags=[backlog.COMMON, backlog.RARE], limit=2)
    )
    assert not walked(nodes)
    assert most_rows(nodes) <= 1100  # how common a tag is, is counted up to a thousand


@pytest.mark.parametrize("tags", [[], [backlog.RARE]])
async def test_lanes_without_waiting_jobs_cost_no_probe(postgres_url: str, tags: list[str]) -> None:
    plans = await Plans.on(postgres_url)
    await plans.store._lanes.of([draft(limit_key=f"k{number}") for number in range(1000)])
    await backlog.fill(plans.store, 1000, rare_every=2, analyze=False)
    await backlog.fill(plans.store, 1000, queue="other", rare_every=2, analyze=False)
    nodes = await plans.of(lambda: plans.manager.claim("w", tags=tags, limit=5))
    assert most_loops(nodes) <= 40
    assert most_rows(nodes) <= 60
    wish = request(5, now=await plans.store.now(), tags=tags)
    nodes = await plans.of(lambda: plans.store.heads(wish))
    assert most_loops(nodes) <= 40
    assert most_rows(nodes) <= 60
    await plans.manager.close()


async def test_shares_probe(plans: Plans) -> None:
    wish = request(10, now=await plans.store.now())
    heads = {head.queue: head for head in await plans.store.heads(wish)}
    nodes = await plans.of(lambda: plans.store.heads(wish))
    assert "jobs_ready" in indexes(nodes)
    assert not walked(nodes)
    assert most_rows(nodes) <= 60
    gate = Record(kind=KIND, name=new_id())
    nodes = await plans.of(lambda: plans.store.claim_shares(wish, _shares(heads.values()), [gate]))
    assert "jobs_ready" in indexes(nodes)
    assert not walked(nodes)
    assert most_rows(nodes) <= 60


async def test_the_next_due_job_is_one_entry_of_each_lane(plans: Plans) -> None:
    now = await plans.store.now()
    found: list[object] = []

    async def look() -> None:
        found.append(await plans.store.next_due(request(1, now=now)))

    nodes = await plans.of(look)
    assert found[0] is not None
    assert "jobs_ready" in indexes(nodes)
    assert not walked(nodes)
    assert most_rows(nodes) <= 60


async def test_a_commit_goes_by_keys(plans: Plans) -> None:
    jobs = await plans.manager.claim("w", limit=50)
    done = [Completed(job_id=job.id, token=job.token, known=job) for job in jobs]
    nodes = await plans.of(lambda: plans.manager.settle(done))
    assert not walked(nodes)
    assert most_rows(nodes) <= 200


async def test_a_submission_looks_at_nothing_old(plans: Plans) -> None:
    specs = [JobSpec(type="new", tags=["t"], key=f"k{n}") for n in range(20)]
    nodes = await plans.of(lambda: plans.manager.submit_many(specs))
    assert not walked(nodes)
    assert most_rows(nodes) <= 100


async def test_heartbeats_go_by_keys(plans: Plans) -> None:
    jobs = await plans.manager.claim("w", limit=20)
    leases = [job.lease for job in jobs if job.lease is not None]
    nodes = await plans.of(lambda: plans.manager.heartbeat(leases))
    assert not walked(nodes)
    assert most_rows(nodes) <= 100


async def test_jobs_of_a_worker_and_lapsed_leases_come_from_the_leased(plans: Plans) -> None:
    await plans.manager.claim("the one", limit=10)
    now = await plans.store.now()
    query = Query(assignee="the one", states=(State.RUNNING, State.CANCELLING))
    for call in (
        lambda: plans.store.find(query),
        lambda: plans.store.lapsed(now, 100),
        lambda: plans.store.held(now, ["default", "other"]),
    ):
        nodes = await plans.of(call)
        assert "jobs_leased" in indexes(nodes)
        assert not walked(nodes)


async def test_pages_by_a_rare_tag_come_from_the_tag(plans: Plans) -> None:
    nodes = await plans.of(lambda: plans.store.find(Query(tags=(backlog.RARE,), limit=5)))
    assert "job_tags_pkey" in indexes(nodes)
    assert most_rows(nodes) <= 1100


@pytest.mark.parametrize("newest_first", [False, True])
async def test_a_page_is_read_from_where_the_last_has_ended(
    plans: Plans, newest_first: bool
) -> None:
    query = Query(after_seq=JOBS // 2, newest_first=newest_first, limit=20)
    nodes = await plans.of(lambda: plans.store.find(query))
    assert not walked(nodes)
    assert most_rows(nodes) <= 100


async def test_jobs_of_a_small_queue_come_from_its_lanes(plans: Plans) -> None:
    queue = new_id()
    made = await plans.manager.submit_many([JobSpec(type="x", queue=queue) for _ in range(3)])
    await plans.store.find(Query(queues=(queue,)))
    nodes = await plans.of(lambda: plans.store.find(Query(queues=(queue,), limit=20)))
    assert "bodies_of_lane" in indexes(nodes)
    assert most_rows(nodes) <= 100
    await plans.manager.cancel([job.id for job in made.jobs])


async def test_ended_jobs_come_from_the_ended(plans: Plans) -> None:
    nodes = await plans.of(lambda: plans.store.find(Query(states=(State.DEAD,), limit=20)))
    assert "jobs_ended" in indexes(nodes)
    assert most_rows(nodes) <= 100


async def test_events_are_read_on_from_the_cursor(plans: Plans) -> None:
    jobs = await plans.manager.claim("w", limit=100)
    cursor = await plans.manager.tail()
    await plans.manager.release(jobs[0].id, jobs[0].token)
    nodes = await plans.of(lambda: plans.store.events(EventQuery(after=cursor)))
    assert indexes(nodes) == {"events_pkey", "lanes_identity"}  # the latter only for a tenant
    assert most_rows(nodes) <= 5
    nodes = await plans.of(lambda: plans.store.events(EventQuery(tenant="default", limit=50)))
    assert "events_pkey" in indexes(nodes)
    assert most_loops(nodes) == 1  # the tenant's lanes are looked up once, not event by event
    assert most_rows(nodes) <= 50
    nodes = await plans.of(lambda: plans.store.events(EventQuery(job_id=jobs[0].id)))
    assert most_rows(nodes) <= 10


async def test_a_trim_begins_where_the_last_has_ended(plans: Plans) -> None:
    """While a forgotten transaction keeps what was trimmed, nobody walks over it again."""
    await plans.manager.submit_many([JobSpec(type="new") for _ in range(3500)])
    later = await plans.store.now() + timedelta(days=1)
    async with held.snapshot(plans.url, plans.store._sql.schema):
        assert await plans.store.trim([], later, 3000) == 3000
        nodes = await plans.of(lambda: plans.store.trim([], later, 100))
        assert "events_pkey" in indexes(nodes)
        assert not walked(nodes)
        assert most_rows(nodes) <= 200
        for query in (EventQuery(limit=50), EventQuery(limit=50, tenant="default")):
            await plans.store.events(query)
            assert await _buffers(plans, query) <= 60


async def _buffers(plans: Plans, query: EventQuery) -> float:
    """Pages that the busiest step touched: a walk over three thousand dead entries would show."""
    return max(
        float(node.get("Shared Hit Blocks", 0) + node.get("Shared Read Blocks", 0))
        for node in await plans.of(lambda: plans.store.events(query))
    )


async def test_plans_from_the_time_when_the_tables_were_empty_do_as_well(
    postgres_schemas: Schemas,
) -> None:
    """A connection keeps its plans: those of the first minute must be good for the millionth job."""
    postgres_url = postgres_schemas.take(unused=True)
    plans = await Plans.on(postgres_url)
    for _ in range(8):  # PostgreSQL settles on a plan after five
        await _everything(plans, limit=1)
    filler = await PostgresStore.open(postgres_url)
    await backlog.fill(filler, JOBS // 2, rare_every=1000, analyze=False)
    manager = plans.manager
    parents = await manager.submit_many([JobSpec(type="p") for _ in range(100)])
    for parent in parents.jobs:
        await manager.submit_many([JobSpec(type="c", after=[parent.id]) for _ in range(20)])
    await filler.count(await filler.now())  # tallies what is new: each event is read once for that
    await filler.close()
    nodes = await plans.of(lambda: _everything(plans, limit=20))
    assert not walked(nodes)
    assert most_rows(nodes) <= 1100  # how common a tag is, is counted up to a thousand
    await manager.close()


async def test_statistics_from_a_time_when_no_job_waited_do_as_well(
    postgres_schemas: Schemas,
) -> None:
    """The server then expects that a job which waits is hardly ever found, and might look for all of them."""
    postgres_url = postgres_schemas.take(unused=True)
    store = await PostgresStore.open(postgres_url)
    await backlog.fill(store, 1000, rare_every=1000, analyze=False)
    async with store._pool.connection() as connection:
        await connection.execute(
            f"UPDATE {store._sql.quoted_schema}.jobs SET state = 'completed', finalized_at = now()"
        )
        await connection.execute(f"DELETE FROM {store._sql.quoted_schema}.ready_tags")
        for table in sorted(BIG):
            await connection.execute(f"ANALYZE {store._sql.quoted_schema}.{table}")
    await backlog.fill(store, JOBS // 2, rare_every=1000, analyze=False)
    await store.close()
    plans = await Plans.on(postgres_url)
    nodes = await plans.of(lambda: _everything(plans, limit=20))
    assert not walked(nodes)
    assert most_rows(nodes) <= 1100  # how common a tag is, is counted up to a thousand
    await plans.manager.close()


async def _everything(plans: Plans, *, limit: int) -> None:
    """Each hot statement once, on a few jobs."""
    manager = plans.manager
    specs = [
        JobSpec(type="x", tags=[backlog.RARE, backlog.COMMON], key=f"{limit}-{n}", priority=0)
        for n in range(limit)
    ]
    first = await manager.submit_many(specs)
    await manager.submit_many([JobSpec(type="y", after=[job.id]) for job in first.jobs])
    jobs = await manager.claim("w", tags=[backlog.RARE, backlog.COMMON], limit=limit)
    assert len(jobs) == limit
    await manager.heartbeat([job.lease for job in jobs if job.lease is not None])
    await manager.progress(jobs[0].id, jobs[0].token or "", 0.5)
    (after,) = await manager.store.edges(parent_id=jobs[0].id)
    await manager.update(after.child_id, priority=1, add_tags=[backlog.RARE])
    await manager.update(jobs[0].id, remove_tags=[backlog.RARE], correlation_id="c")
    await _by_shares(plans, limit=limit)
    await manager.settle([Completed(job_id=job.id, token=job.token) for job in jobs])
    for job in await manager.claim("w", types=["y"], limit=limit):
        await manager.fail(job.id, job.token, "no", retry_after=0.0)
    cancelled = await manager.cancel([job.id for job in await manager.claim("w", limit=limit)])
    await manager.expire_worker("w")
    await manager.reap()
    await manager.end_lifetimes()
    await manager.sweep()
    await manager.events(after=await manager.tail())
    await manager.delete([job.id for job in first.jobs])
    await manager.trim_events(0, without_readers=True, limit=limit)
    assert cancelled.jobs


async def _by_shares(plans: Plans, *, limit: int) -> None:
    """A claim behind a gate, and what goes with it."""
    manager, store = plans.manager, plans.store
    await manager.submit_many([JobSpec(type="s", queue="s", limit_key=f"k{n}") for n in range(3)])
    wish = request(limit, now=await store.now() + timedelta(seconds=1))
    gates = await store.records(KIND, ["s"]) or [Record(kind=KIND, name="s")]
    await store.held(wish.now, ["s"])
    heads = [head for head in await store.heads(wish) if head.queue == "s"]
    jobs = await store.claim_shares(wish, _shares(heads), gates)
    assert jobs
    await manager.release(jobs[0].id, jobs[0].token)
    freed = await manager.get(jobs[0].id)
    rewrite = Rewrite(job_id=freed.id, version=freed.version, payload_json=b"1", log_json=b"[]")
    assert await store.rewrite([rewrite]) == [True]


def _shares(heads: Iterable[Head]) -> list[Share]:
    return [Share(**{name: getattr(head, name) for name in LANE}, jobs=3) for head in heads]
