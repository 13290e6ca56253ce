"""What one tenant can learn of another by the way, and what it can do to its workers."""

from __future__ import annotations

from headrace import errors
from headrace.limits import QueueLimits
from headrace.manager.explanation import Why
from headrace.model import State
from headrace.policy import IdSource, OnDuplicateId, Policy
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import submit, suite
from headrace.validation import UNCHANGED


@suite.case(
    "side channels", "a taken id is refused in the same words, whoever has it; no more is told"
)
async def taken_id(env: Env) -> None:
    for existing in OnDuplicateId:
        manager = await env.manager(Policy(ids=IdSource.EITHER, on_duplicate_id=existing))
        name = f"taken-{existing}"
        own = await submit(manager, name, tenant="acme", payload={"secret": 1})
        mallory = manager.scoped("mallory")
        with raises(errors.DuplicateJob) as foreign:
            await submit(mallory, name)
        assert str(foreign.error) == f"a job with id {name} is stored already; {UNCHANGED}"
        assert await manager.get(name) == own
        assert (await mallory.find()).jobs == ()


@suite.case("side channels", "limits: a tenant is told of queues it uses, or names itself")
async def limited_queues(env: Env) -> None:
    manager = await env.manager()
    for queue in ("of-acme", "of-both"):
        await manager.set_limits(queue, QueueLimits(concurrency=5))
    await submit(manager, "a", tenant="acme", queue="of-acme")
    await submit(manager, "b", tenant="mallory", queue="of-both")
    assert list(await manager.scoped("mallory").limits()) == ["of-both"]
    assert list(await manager.scoped("acme").limits()) == ["of-acme"]
    assert list(await manager.scoped("mallory").limits("of-acme")) == ["of-acme"]
    assert list(await manager.limits()) == ["of-acme", "of-both"]


@suite.case("side channels", "explain names one's own workers, and counts the operator's")
async def named_workers(env: Env) -> None:
    manager = await env.manager()
    acme = manager.scoped("acme")
    await submit(acme, "j", queue="q")
    await manager.claim("operator-1", queues=["q"], types=["other"])
    await acme.claim("acme-1", queues=["q"], types=["other"])
    await manager.scoped("mallory").claim("mallory-1", queues=["q"], types=["t"])
    (reason,) = (await acme.explain("j")).reasons
    assert reason.why is Why.NO_WORKER
    assert reason.facts == {"workers_on_queue": ["acme-1"], "others_on_queue": 1}
    (reason,) = (await manager.explain("j")).reasons
    assert reason.facts["workers_on_queue"] == ["acme-1", "operator-1"]


@suite.case("side channels", "a worker's name is its tenant's own: nobody takes its place")
async def same_name(env: Env) -> None:
    manager = await env.manager()
    acme, mallory = manager.scoped("acme"), manager.scoped("mallory")
    await acme.claim("w", queues=["q"])
    await submit(acme, "waits", queue="q")
    await mallory.claim("w", queues=["elsewhere"])
    (of_acme,) = await acme.workers(env.clock.now())
    assert (of_acme.worker, list(of_acme.queues or ())) == ("w", ["q"])
    (of_mallory,) = await mallory.workers(env.clock.now())
    assert (of_mallory.worker, list(of_mallory.queues or ())) == ("w", ["elsewhere"])
    assert Why.NO_WORKER not in [one.why for one in (await acme.explain("waits")).reasons]


@suite.case("side channels", "a worker that is declared gone takes only its tenant's jobs along")
async def expired_worker(env: Env) -> None:
    manager = await env.manager()
    acme, mallory = manager.scoped("acme"), manager.scoped("mallory")
    await submit(acme, "a")
    await submit(mallory, "m")
    await acme.claim("w")
    await mallory.claim("w")
    assert [job.id for job in (await mallory.expire_worker("w")).jobs] == ["m"]
    assert (await manager.get("a")).state is State.RUNNING
