"""Turns between tenants: a backlog, however long, does not keep others waiting."""

from __future__ import annotations

from collections import Counter

from headrace.limits import QueueLimits
from headrace.manager import JobManager
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.manager.limits import claim, fill, limited
from headrace.testing.conformance.manager.suite import suite


async def order(manager: JobManager, claims: int, size: int = 1) -> str:
    """Whose the jobs of so many claims are."""
    return "".join([job.tenant for _ in range(claims) for job in await claim(manager, size)])


@suite.case(
    "fairness",
    "a small tenant's k-th job is claimed within 2k claims, whatever the other has waiting",
)
async def bound(env: Env) -> None:
    manager = await limited(env, QueueLimits(fair=True))
    await fill(manager, 500, tenant="A")
    assert await order(manager, 20) == "A" * 20
    env.clock.advance(1)
    await fill(manager, 10, tenant="B")
    taken = await order(manager, 30)
    for k in range(1, 11):
        assert taken[: 2 * k].count("B") >= k, taken
    assert taken[20:] == "A" * 10


@suite.case("fairness", "weights hold within one job over every window")
async def weights(env: Env) -> None:
    manager = await limited(env, QueueLimits(fair=True, weights={"A": 3}))
    await fill(manager, 60, tenant="A")
    await fill(manager, 60, tenant="B")
    taken = await order(manager, 40)
    for first in range(len(taken)):
        for last in range(first + 1, len(taken) + 1):
            assert abs(taken[first:last].count("B") - (last - first) / 4) <= 1, taken


@suite.case("fairness", "holds for claims of many jobs, over workers that claim in between")
async def batches(env: Env) -> None:
    manager = await limited(env, QueueLimits(fair=True))
    other = JobManager(manager.store, clock=env.clock)
    for tenant, jobs in (("A", 200), ("B", 40), ("C", 40)):
        await fill(manager, jobs, tenant=tenant)
        env.clock.advance(1)
    total: Counter[str] = Counter()
    for size in (7, 1, 10, 2, 16, 5):
        total += Counter(await order(manager, 1, size))
        total += Counter(await order(other, 1, size))
        assert max(total.values()) - min(total.values()) <= 1
    assert total.total() == 82


@suite.case("fairness", "nobody saves turns up while away")
async def returning(env: Env) -> None:
    manager = await limited(env, QueueLimits(fair=True))
    await fill(manager, 100, tenant="A")
    await fill(manager, 1, tenant="B")
    await order(manager, 40)
    await fill(manager, 50, tenant="B")
    taken = await order(manager, 10)
    assert taken in {"BA" * 5, "AB" * 5}


@suite.case(
    "fairness", "a higher priority comes first whosever turn it is; turns are taken within one"
)
async def priorities(env: Env) -> None:
    manager = await limited(env, QueueLimits(fair=True))
    await fill(manager, 5, tenant="A", priority=0)
    await fill(manager, 5, tenant="A")
    await fill(manager, 5, tenant="B")
    assert await order(manager, 5) == "A" * 5
    assert Counter(await order(manager, 6)) == {"A": 3, "B": 3}


@suite.case("fairness", "a tenant that is at a limit of its own leaves its turns to the others")
async def with_limits(env: Env) -> None:
    manager = await limited(env, QueueLimits(fair=True, tenant_concurrency=2))
    await fill(manager, 9, tenant="A")
    await fill(manager, 9, tenant="B")
    await fill(manager, 1, tenant="C")
    assert Counter(await order(manager, 1, 20)) == {"A": 2, "B": 2, "C": 1}
