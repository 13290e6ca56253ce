"""What the diagnosis says of jobs that nobody looks after."""

from __future__ import annotations

from headrace import lifecycle
from headrace.manager import JobManager
from headrace.policy import Policy
from headrace.stores.base import Commit, Finding, Health
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.manager.suite import submit, suite, take


async def _line(manager: JobManager, what: str) -> Finding:
    (line,) = [finding for finding in await manager.diagnose() if finding.what == what]
    assert (line.advice is None) is (line.health is Health.OK)
    return line


async def _told(manager: JobManager, what: str) -> tuple[Health, str]:
    line = await _line(manager, what)
    return line.health, line.value


@suite.case("diagnose", "warns of leases that have expired, until they are taken back")
async def expired(env: Env) -> None:
    manager = await env.manager()
    for name in ("a", "b"):
        await submit(manager, name, tenant="acme", lease_seconds=10)
    await submit(manager, "long", tenant="acme", lease_seconds=20)
    await manager.claim("w", limit=3)
    env.clock.advance(9.999)
    assert await _told(manager, "expired leases") == (Health.OK, "0")
    env.clock.advance(0.001)
    assert await _told(manager, "expired leases") == (Health.WARNING, "2")
    assert "is a worker running" in ((await _line(manager, "expired leases")).advice or "")
    assert await _told(manager.scoped("acme"), "expired leases") == (Health.WARNING, "2")
    assert await _told(manager.scoped("mallory"), "expired leases") == (Health.OK, "0")
    await manager.reap()
    assert await _told(manager, "expired leases") == (Health.OK, "0")


@suite.case("diagnose", "warns of jobs past their lifetime, until they are ended")
async def outlived(env: Env) -> None:
    manager = await env.manager(Policy(lifetime_seconds=100.0, lease_seconds=None))
    for name in ("running", "pending"):
        await submit(manager, name, tenant="acme")
    await manager.claim("w", limit=1)
    await submit(manager, "endless", tenant="acme", lifetime_seconds=None)
    env.clock.advance(99.999)
    assert await _told(manager, "outlived jobs") == (Health.OK, "0")
    env.clock.advance(0.001)
    assert await _told(manager, "outlived jobs") == (Health.WARNING, "2")
    assert await _told(manager.scoped("acme"), "outlived jobs") == (Health.WARNING, "2")
    assert await _told(manager.scoped("mallory"), "outlived jobs") == (Health.OK, "0")
    await manager.end_lifetimes()
    assert await _told(manager, "outlived jobs") == (Health.OK, "0")


@suite.case("diagnose", "warns the operator of dependencies that a crash has left to the sweep")
async def unswept(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "parent", tenant="acme")
    await submit(manager, "child", tenant="acme", after=["parent"])
    assert await _told(manager, "dependencies to sweep") == (Health.OK, "0")
    row, token = await take(manager, "parent")
    # The commit alone, as if the process died before it could judge the child.
    change = lifecycle.apply(row, lifecycle.Complete(token=token), env.clock.now())
    await manager.store.commit(Commit(changes=[change]))
    assert await _told(manager, "dependencies to sweep") == (Health.WARNING, "1")
    assert await _told(manager.scoped("acme"), "dependencies to sweep") == (Health.OK, "0")
    await manager.sweep()
    assert await _told(manager, "dependencies to sweep") == (Health.OK, "0")


@suite.case("diagnose", "warns of jobs that are ready while no worker has asked for any")
async def unattended(env: Env) -> None:
    manager = await env.manager()
    await submit(manager, "later", delay_seconds=100)
    assert await _told(manager, "backlog") == (Health.OK, "0 ready, 1 delayed, 0 blocked")
    await submit(manager, "now")
    assert await _told(manager, "backlog") == (Health.WARNING, "1 ready, 1 delayed, 0 blocked")
    await manager.claim("w", limit=1)
    await submit(manager, "next")
    assert await _told(manager, "backlog") == (Health.OK, "1 ready, 1 delayed, 0 blocked")
    assert await _told(manager, "workers") == (Health.OK, "1 seen in the last 60 seconds")
    env.clock.advance(61)
    assert await _told(manager, "backlog") == (Health.WARNING, "1 ready, 1 delayed, 0 blocked")
