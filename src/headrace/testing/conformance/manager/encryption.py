"""Encryption at rest: what stands in the store, who can read it, and changing keys."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from headrace import errors
from headrace.crypto import KeyRing
from headrace.envelope import Sealed
from headrace.manager import Completed, JobManager
from headrace.model import Category, Dependency, Job, State
from headrace.policy import Policies, Policy
from headrace.schedules import Every
from headrace.spec import JobSpec
from headrace.stores.base import Rewrite
from headrace.testing.conformance.kit import CaseFunction, Env, raises
from headrace.testing.conformance.manager.suite import submit, suite, take

SECRET = "the-secret-word"  # noqa: S105 - what must not be found where it does not belong
OLD, NEW = b"o" * 32, b"n" * 32


def case(title: str) -> Callable[[CaseFunction], CaseFunction]:
    """A case for whoever has the extra `crypto`; there is nothing to show without it."""
    if importlib.util.find_spec("cryptography") is None:
        return lambda function: function
    return suite.case("encryption", title)


def old_ring() -> KeyRing:
    return KeyRing({"2025-04": OLD}, primary="2025-04")


def both_rings() -> KeyRing:
    """The new key for what is written, the old one for what is there."""
    return KeyRing({"2026-11": NEW, "2025-04": OLD}, primary="2026-11")


def new_ring() -> KeyRing:
    return KeyRing({"2026-11": NEW}, primary="2026-11")


def with_keys(manager: JobManager, keys: KeyRing | None) -> JobManager:
    """Another manager on the same store."""
    return JobManager(manager.store, clock=manager.clock, policies=manager.policies, keys=keys)


async def live_through(manager: JobManager, job_id: str) -> None:
    """Fill all of a job that is encrypted, but for the result; it waits for its second attempt."""
    await submit(manager, job_id, payload={"word": SECRET}, queue=job_id)
    (job,) = await manager.claim("w", queues=[job_id])
    token = str(job.token)
    await manager.checkpoint(job_id, token, [SECRET])
    await manager.keep_log(job_id, token, [{"line": SECRET}])
    await manager.fail(job_id, token, f"{SECRET} é\n is wrong", code="E1", retry_after=0.0)


async def contents(manager: JobManager, job_id: str) -> tuple[Any, ...]:
    job = await manager.get(job_id)
    message = None if job.failure is None else job.failure.message
    return job.payload, job.result, job.checkpoint, job.log, message


def whole(values: object) -> str:
    """All that they hold, as text: what they print of themselves leaves contents out."""
    return repr(msgspec.to_builtins(values, builtin_types=(bytes, datetime)))


async def stored(manager: JobManager, job_id: str) -> Job:
    """The row as it stands in the store."""
    return (await manager.store.get([job_id]))[job_id]


FILLED = ({"word": SECRET}, None, [SECRET], [{"line": SECRET}], f"{SECRET} é\n is wrong")


@case("payload, error, checkpoint, log and result stand encrypted in the store, and nowhere else")
async def at_rest(env: Env) -> None:
    manager = await env.manager(keys=old_ring())
    await live_through(manager, "j")
    assert await contents(manager, "j") == FILLED
    _, token = await take(manager, "j")
    changed = await manager.complete("j", token, {"said": SECRET})
    assert changed.job.result == {"said": SECRET}
    row = await stored(manager, "j")
    for one in (row.payload_json, row.result_json, row.checkpoint_json, row.log_json):
        assert one is not None
        assert one.startswith(b'{"$sealed":{"v":1,"key":"2025-04","data":"')
    assert row.failure is not None
    assert row.failure.message.startswith("sealed:v1:2025-04:")
    assert (row.failure.category, row.failure.code) == (Category.TEMPORARY, "E1")
    assert SECRET not in whole((row, await manager.events()))
    assert (await contents(manager, "j"))[1] == {"said": SECRET}


@case("every answer of the manager is readable")
async def answers(env: Env) -> None:
    manager = await env.manager(keys=old_ring())
    given = await submit(manager, "j", payload=SECRET, key="k")
    again = await manager.submit(JobSpec(type="t", payload="other", key="k"))
    (claimed,) = await manager.claim("w")
    spawned = await manager.spawn(
        "j", str(claimed.token), [JobSpec(type="t", id="s", payload=[SECRET])]
    )
    settled = await manager.settle(
        [Completed(job_id="j", token=claimed.token, result=SECRET, known=claimed)]
    )
    page = await manager.find(states=[State.COMPLETED])
    (ended,) = settled.outcomes
    assert isinstance(ended, Job)
    assert [given.payload, again.job.payload, claimed.payload, ended.payload] == [SECRET] * 4
    assert [ended.result, page.jobs[0].result, page.jobs[0].payload] == [SECRET] * 3
    assert spawned.job.payload == [SECRET]
    cancelled = await manager.cancel(["s"], reason=SECRET)
    failure = cancelled.jobs[0].failure
    assert failure is not None
    assert failure.message == SECRET
    assert SECRET not in whole((await stored(manager, "s"), await stored(manager, "j")))


@case("events carry category and code, never a message")
async def hushed(env: Env) -> None:
    manager = await env.manager(Policy(max_attempts=1), keys=old_ring())
    await submit(manager, "j", payload=1)
    await submit(manager, "child", after=[Dependency("j")])
    await submit(manager, "lost", queue="q")
    claimed = {job.id: job for job in await manager.claim("w", limit=2)}
    await manager.fail("j", claimed["j"].token, SECRET, code="E1")
    env.clock.advance(3600)
    await manager.reap()
    told = [(event.kind, event.code, event.message) for event in await manager.events()]
    failed = [(code, message) for _, code, message in told if message is not None]
    assert failed == [
        ("E1", "encrypted"),
        ("dependency", "encrypted"),
        ("lease_expired", "encrypted"),
    ]
    lapsed = (await manager.get("lost")).failure
    assert lapsed is not None
    assert lapsed.message == "the lease lapsed without a heartbeat"


@case("without the key a read says that it is encrypted, and nothing else")
async def without_key(env: Env) -> None:
    manager = await env.manager(keys=old_ring())
    await live_through(manager, "j")
    sealed = Sealed("2025-04")
    for keys in (None, new_ring()):
        other = with_keys(manager, keys)
        assert await contents(other, "j") == (sealed, None, sealed, [sealed], str(sealed))
        seen = await other.get("j")
        assert seen.is_sealed
        assert str(seen.payload) == "encrypted with key 2025-04"
        row = await stored(manager, "j")
        assert row.failure is not None
        for cipher in (row.payload_json, row.checkpoint_json, row.failure.message):
            assert repr(cipher)[-30:] not in whole(msgspec.structs.replace(seen, seals=None))
        (claimed,) = await other.claim("w")
        assert claimed.is_sealed
        await other.release("j", claimed.token)
    assert not (await manager.get("j")).is_sealed


@case("whoever has no key leaves what is encrypted as it was, and can cancel and delete")
async def bystander(env: Env) -> None:
    manager = await env.manager(keys=old_ring())
    await live_through(manager, "j")
    other = with_keys(manager, None)
    (claimed,) = await other.claim("w")
    await other.settle([Completed(job_id="j", token=claimed.token, known=claimed)])
    assert await contents(manager, "j") == FILLED
    await submit(manager, "k", payload=SECRET)
    await other.cancel(["k"], reason="by hand")
    assert (await manager.get("k")).payload == SECRET
    assert "by hand" not in whole(await manager.events(job_id="k"))
    assert {job.id for job in await other.delete(["j", "k"])} == {"j", "k"}


@case("what one change leaves alone is written back as it stood")
async def known(env: Env) -> None:
    manager = await env.manager(keys=old_ring())
    await live_through(manager, "j")
    before = await stored(manager, "j")
    (claimed,) = await manager.claim("w")
    await manager.settle([Completed(job_id="j", token=claimed.token, result=1, known=claimed)])
    after = await stored(manager, "j")
    assert after.payload_json == before.payload_json
    assert after.checkpoint_json == before.checkpoint_json
    assert after.failure == before.failure
    assert await contents(manager, "j") == (FILLED[0], 1, *FILLED[2:])


@case("a ciphertext opens only in its own job, tenant and field")
async def bound(env: Env) -> None:
    manager = await env.manager(keys=old_ring())
    for name, tenant in (("a", "t1"), ("b", "t1"), ("c", "t2")):
        await submit(manager, name, payload=f"{SECRET} of {name}", tenant=tenant)
        _, token = await take(manager, name)
        await manager.checkpoint(name, token, f"{SECRET} of {name}")
    await manager.reset_running()
    rows = {name: await stored(manager, name) for name in "abc"}
    moves = [
        Rewrite(job_id="a", version=rows["a"].version, payload_json=rows["b"].payload_json),
        Rewrite(job_id="b", version=rows["b"].version, payload_json=rows["b"].checkpoint_json),
        Rewrite(job_id="c", version=rows["c"].version, payload_json=rows["a"].payload_json),
    ]
    assert all(await manager.store.rewrite(moves))
    for name in "abc":
        job = await manager.get(name)
        assert job.is_sealed
        with raises(errors.CannotDecrypt):
            _ = job.payload
        assert job.checkpoint == f"{SECRET} of {name}"


@case("what was tampered with is an error to read, and can be listed, cancelled and deleted")
async def tampered(env: Env) -> None:
    manager = await env.manager(keys=old_ring())
    await live_through(manager, "j")
    row = await stored(manager, "j")
    assert row.failure is not None
    middle = len(row.payload_json) - 20
    flipped = b"A" if row.payload_json[middle : middle + 1] != b"A" else b"B"
    broken = row.payload_json[:middle] + flipped + row.payload_json[middle + 1 :]
    rewrite = Rewrite(
        job_id="j",
        version=row.version,
        payload_json=broken,
        checkpoint_json=b'{"$sealed":{"v":1,"key":"2025-04","data":"AAAA"}}',
        log_json=b'{"$sealed":5}',
        failure_message=row.failure.message[:-8] + "AAAAAAAA",
    )
    assert await manager.store.rewrite([rewrite]) == [True]
    (job,) = (await manager.find()).jobs
    for read in (lambda: job.payload, lambda: job.checkpoint, lambda: job.log):
        with raises(errors.CannotDecrypt):
            read()
    assert job.failure is not None
    assert job.failure.message.startswith("encrypted with key 2025-04; it cannot be decrypted: ")
    (cancelled,) = (await manager.cancel(["j"])).jobs
    assert cancelled.state is State.CANCELLED
    with raises(errors.CannotDecrypt):
        await manager.redrive(["j"])
    assert len(await manager.delete(["j"])) == 1


@case("a redriven job is encrypted as itself; without the key it is refused")
async def redriven(env: Env) -> None:
    manager = await env.manager(keys=old_ring())
    await submit(manager, "j", payload=SECRET)
    await manager.cancel(["j"])
    with raises(errors.CannotDecrypt):
        await with_keys(manager, None).redrive(["j"])
    assert (await manager.stats()).total == 1
    again = (await manager.redrive(["j"])).job
    assert (await manager.get(again.id)).payload == SECRET
    row = await stored(manager, again.id)
    assert row.payload_json.startswith(b'{"$sealed":')
    assert row.payload_json != (await stored(manager, "j")).payload_json


@case("a queue whose policy says so stays in the clear")
async def plain_queue(env: Env) -> None:
    policies = Policies(queues={"open": Policy(encrypted=False)})
    manager = await env.manager(policies, keys=old_ring())
    await submit(manager, "j", queue="open", payload={"n": 1})
    _, token = await take(manager, "j")
    await manager.fail("j", token, "told")
    row = await stored(manager, "j")
    assert (row.payload_json, row.failure and row.failure.message) == (b'{"n":1}', "told")
    assert (await manager.events(job_id="j"))[-1].message == "told"
    assert (await with_keys(manager, None).get("j")).payload == {"n": 1}


@case("the limit is on what is given, not on what it becomes")
async def limits(env: Env) -> None:
    manager = await env.manager(Policy(payload_bytes_max=1000), keys=old_ring())
    await submit(manager, "j", payload="x" * 998)
    with raises(errors.PayloadTooLarge):
        await submit(manager, "k", payload="x" * 999)
    _, token = await take(manager, "j")
    await manager.checkpoint("j", token, "y" * 998)
    with raises(errors.PayloadTooLarge):
        await manager.complete("j", token, "z" * 999)
    long = "é" * 100_000
    await manager.fail("j", token, long + "cut")
    failure = (await manager.get("j")).failure
    assert failure is not None
    assert failure.message == long


@case("each tenant's manager has the same keys")
async def tenants(env: Env) -> None:
    manager = await env.manager(keys=old_ring())
    acme = manager.scoped("acme")
    await submit(acme, "j", payload=SECRET)
    assert SECRET not in whole(await stored(manager, "j"))
    assert (await acme.get("j")).payload == SECRET
    assert (await manager.claim("w", tenant="acme"))[0].payload == SECRET


@case("what looks like an envelope cannot be submitted, nor pass for one")
async def forged(env: Env) -> None:
    manager = await env.manager()
    with raises(errors.InvalidPayload):
        await submit(manager, "j", payload={"$sealed": {"v": 1, "key": "k", "data": "AAAA"}})
    with raises(errors.InvalidPayload):
        await submit(manager, "j", payload=Sealed("k"))
    await submit(manager, "j")
    _, token = await take(manager, "j")
    await manager.fail("j", token, "sealed:v1:k:AAAA")
    failure = (await manager.get("j")).failure
    assert failure is not None
    assert failure.message == "not encrypted: sealed:v1:k:AAAA"


@case("re-encryption brings everything under the primary key, and the old one can go")
async def rotation(env: Env) -> None:
    manager = await env.manager(keys=old_ring())
    for name in ("a", "b"):
        await live_through(manager, name)
    (held,) = await manager.claim("w")
    rotating = with_keys(manager, both_rings())
    await submit(rotating, "c", payload=SECRET)
    tail = await manager.tail()
    first = await rotating.reencrypt()
    assert (first.looked_at, first.done, first.skipped, first.left) == (3, 1, 1, 1)
    assert (await rotating.get(held.id)).payload == held.payload
    await manager.release(held.id, held.token)
    page = await rotating.reencrypt(limit=1)
    assert (page.looked_at, page.cursor is None) == (1, False)
    rest = await rotating.reencrypt(cursor=page.cursor)
    assert (page.done + rest.done, rest.left, rest.cursor) == (1, 0, None)
    again = await rotating.reencrypt()
    assert (again.looked_at, again.done, again.left) == (3, 0, 0)
    after = with_keys(manager, new_ring())
    for name in ("a", "b"):
        assert await contents(after, name) == FILLED
    assert (await after.get("c")).payload == SECRET
    assert [event.job_id for event in await manager.events(after=tail)] == [held.id]
    (claimed,) = await after.claim("w2", queues=["a"])
    assert claimed.payload == {"word": SECRET}


@case("re-encryption says what it has no key for, and seals what is in the clear if it is asked to")
async def rotation_leftovers(env: Env) -> None:
    policies = Policies(queues={"open": Policy(encrypted=False)})
    plain = await env.manager(policies)
    await submit(plain, "clear", payload=SECRET)
    await submit(plain, "open", payload="public", queue="open")
    old = with_keys(plain, old_ring())
    await submit(old, "old", payload=SECRET)
    new = with_keys(plain, new_ring())
    with raises(errors.InvalidKeyRing):
        await plain.reencrypt()
    first = await new.reencrypt()
    assert (first.done, first.unreadable, first.plain, first.left) == (0, 1, 1, 1)
    assert SECRET in whole(await stored(plain, "clear"))
    second = await new.reencrypt(seal_plain=True)
    assert (second.done, second.unreadable, second.plain) == (1, 1, 0)
    assert SECRET not in whole(await stored(plain, "clear"))
    assert (await new.get("clear")).payload == SECRET
    assert (await plain.get("open")).payload == "public"
    assert (await old.get("old")).payload == SECRET


@case("re-encryption brings schedules under the primary key, too")
async def rotation_of_schedules(env: Env) -> None:
    manager = await env.manager(keys=old_ring())
    await manager.schedule("s", Every(60), JobSpec(type="t", payload=SECRET))
    alone = await with_keys(manager, new_ring()).reencrypt()
    assert (alone.done, alone.unreadable, alone.left) == (0, 1, 1)
    done = await with_keys(manager, both_rings()).reencrypt()
    assert (done.looked_at, done.done, done.left) == (1, 1, 0)
    (found,) = await with_keys(manager, new_ring()).schedules()
    assert found.job.payload == SECRET
