"""How the last attempts of a job failed: number, time, what was raised, and where."""

from __future__ import annotations

from headrace import errors
from headrace.manager import JobManager
from headrace.model import Category, State
from headrace.policy import Policy
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.encryption import (
    SECRET,
    both_rings,
    case,
    new_ring,
    old_ring,
    with_keys,
)
from headrace.testing.conformance.manager.suite import submit, suite

PLAIN = Policy(lease_seconds=10.0, max_attempts=None)
SEALED = Policy(lease_seconds=10.0, max_attempts=None, encrypted=True)


async def fail(manager: JobManager, text: str, where: str | None, *, keep: bool = True) -> None:
    """One attempt of the only job, as a worker has it fail."""
    (job,) = await manager.claim("w")
    assert job.token is not None
    if where is not None:
        line = {"attempt": job.attempt, "text": f"KeyError: {text}", "traceback": where}
        before = job.log if keep else []
        await manager.keep_log(job.id, job.token, [*before, line])
    await manager.fail(job.id, job.token, text, code="KeyError", retry_after=0.0)


@suite.case("failures", "the last attempts that failed are listed, each with what was kept of it")
async def listed(env: Env) -> None:
    manager = await env.manager(PLAIN)
    await submit(manager, "j")
    assert await manager.failed_attempts("j") == ()
    begin = env.clock.now()
    await fail(manager, "'a'", "there")
    env.clock.advance(1)
    await fail(manager, "'b'", None)
    (job,) = await manager.claim("w")
    await manager.snooze(job.id, job.token, seconds=0)
    await manager.claim("w", lease_seconds=5)
    env.clock.advance(5)
    await manager.reap()
    await fail(manager, "'c'", "elsewhere")
    found = await manager.failed_attempts("j", limit=10)
    assert [(one.attempt, one.told, one.traceback) for one in found] == [
        (1, "KeyError: 'a'", "there"),
        (2, "KeyError: 'b'", None),
        (4, "lease_expired: the lease lapsed without a heartbeat", None),
        (5, "KeyError: 'c'", "elsewhere"),
    ]
    assert (found[0].at, found[0].state, found[0].category) == (
        begin,
        State.RETRYING,
        Category.TEMPORARY,
    )
    assert (found[2].state, found[2].category) == (State.LOST, Category.SYSTEM)
    assert await manager.failed_attempts("j") == found[-3:]
    assert await manager.failed_attempts("j", limit=1) == found[-1:]
    await manager.cancel(["j"])
    assert await manager.failed_attempts("j") == found[-3:]


@suite.case("failures", "those of another tenant's job, or of none, do not exist")
async def isolated(env: Env) -> None:
    manager = await env.manager(PLAIN)
    await submit(manager, "j", tenant="acme")
    await fail(manager, "'a'", "there")
    assert len(await manager.scoped("acme").failed_attempts("j")) == 1
    for blind, job_id in ((manager.scoped("other"), "j"), (manager, "none")):
        with raises(errors.JobNotFound):
            await blind.failed_attempts(job_id)


@case("what failed attempts said, and where, is read with the key, old or new, and not without")
async def sealed(env: Env) -> None:
    manager = await env.manager(SEALED, keys=old_ring())
    await submit(manager, "j")
    for number in (1, 2):
        await fail(manager, f"'{SECRET}{number}'", f"{SECRET} {number}")
    told = [(f"KeyError: '{SECRET}{number}'", f"{SECRET} {number}") for number in (1, 2)]

    async def seen(one: JobManager) -> list[tuple[str, str | None]]:
        return [(each.told, each.traceback) for each in await one.failed_attempts("j")]

    hidden = [("KeyError (encrypted)", None)] * 2
    assert await seen(manager) == told
    assert await seen(with_keys(manager, None)) == hidden
    assert await seen(with_keys(manager, new_ring())) == hidden
    assert (await with_keys(manager, both_rings()).reencrypt()).left == 0
    assert await seen(with_keys(manager, new_ring())) == told
    assert await seen(manager) == hidden
