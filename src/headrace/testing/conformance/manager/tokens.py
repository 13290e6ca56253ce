"""Tokens: made once, stored as a hash, found by their secret, dead when they are revoked or have expired."""

from __future__ import annotations

from datetime import timedelta

from headrace import errors
from headrace.manager import JobManager
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.suite import suite
from headrace.tokens import Scope


def _elsewhere(manager: JobManager) -> JobManager:
    """Another process that has read nothing yet."""
    return JobManager(manager.store, clock=manager.clock)


async def _records(manager: JobManager) -> bytes:
    return b"".join(one.body_json for one in await manager.store.records("token"))


@suite.case("tokens", "a token is found by its secret, and the store holds only a hash of that")
async def by_secret(env: Env) -> None:
    manager = await env.manager()
    made = await manager.create_token("ci", [Scope.READ, "submit", "read"], tenant="a")
    assert made.token.scopes == (Scope.SUBMIT, Scope.READ)
    assert (made.token.label, made.token.tenant) == ("ci", "a")
    assert made.secret.startswith(f"hdr_{made.token.id}_")
    assert made.secret not in repr(made)
    assert made.secret.rpartition("_")[2].encode() not in await _records(manager)
    found = await _elsewhere(manager).token_of(made.secret)
    assert found is not None
    assert (found.id, found.scopes, found.tenant) == (made.token.id, made.token.scopes, "a")
    (listed,) = await manager.list_tokens()
    assert listed == found


@suite.case("tokens", "what is not the secret of a token opens nothing, however near it comes")
async def wrong_secrets(env: Env) -> None:
    manager = await env.manager()
    one = await manager.create_token("one", ["read"])
    other = await manager.create_token("other", ["read"])
    last = one.secret[-1]
    near = [
        "",
        one.token.id,
        one.token.digest,
        one.secret[:-1],
        one.secret[:-1] + ("A" if last != "A" else "E"),
        one.secret + "A",
        one.secret.replace(one.token.id, other.token.id),
        one.secret.upper(),
        f" {one.secret}",
        "hdr_ü",
    ]
    assert [await manager.token_of(secret) for secret in near] == [None] * len(near)


@suite.case("tokens", "a revoked token is dead for whoever asks next, and stays listed")
async def revoked(env: Env) -> None:
    manager = await env.manager()
    another = _elsewhere(manager)
    made = await manager.create_token("w", ["work"])
    assert await another.token_of(made.secret) is not None
    assert await manager.revoke_token(made.token.id)
    assert await another.token_of(made.secret) is None
    assert not await manager.revoke_token(made.token.id)
    assert not await manager.revoke_token("0123456789ab")
    (listed,) = await manager.list_tokens()
    assert listed.revoked_at == env.clock.now()


@suite.case("tokens", "a token is dead from the moment at which it expires")
async def expired(env: Env) -> None:
    manager = await env.manager()
    end = env.clock.now() + timedelta(seconds=60)
    made = await manager.create_token("t", ["read"], expires_at=end)
    env.clock.advance(59)
    assert await manager.token_of(made.secret) is not None
    env.clock.advance(1)
    assert await manager.token_of(made.secret) is None
    assert not await manager.revoke_token(made.token.id), "it was dead already"


@suite.case("tokens", "when a token was last used is known to the hour, and written no more often")
async def used(env: Env) -> None:
    manager = await env.manager()
    made = await manager.create_token("t", ["read"])
    assert (await manager.list_tokens())[0].used_at is None
    versions = []
    for _ in range(4):
        await manager.token_of(made.secret)
        (record,) = await manager.store.records("token")
        versions.append(record.version)
        env.clock.advance(1200)
    assert len(set(versions)) <= 3, "written for every hour, not for every use"
    (listed,) = await manager.list_tokens()
    assert listed.used_at is not None
    assert listed.used_at <= env.clock.now() - timedelta(seconds=1200)
    assert (listed.used_at.minute, listed.used_at.second) == (0, 0)


@suite.case("tokens", "a tenant makes, sees, revokes and uses only its own")
async def of_tenants(env: Env) -> None:
    operator = await env.manager()
    a, b = operator.scoped("a"), operator.scoped("b")
    mine = await a.create_token("mine", ["read"])
    free = await operator.create_token("free", ["admin"])
    assert mine.token.tenant == "a"
    with raises(errors.InvalidInput):
        await a.create_token("theirs", ["read"], tenant="b")
    assert [token.id for token in await a.list_tokens()] == [mine.token.id]
    assert await b.list_tokens() == ()
    assert not await b.revoke_token(mine.token.id)
    assert not await a.revoke_token(free.token.id)
    assert await b.token_of(mine.secret) is None
    assert await a.token_of(free.secret) is None
    assert await a.token_of(mine.secret) is not None
    assert await operator.token_of(mine.secret) is not None


@suite.case("tokens", "what cannot be is refused, and nothing is stored")
async def refused(env: Env) -> None:
    manager = await env.manager()
    with raises(errors.InvalidInput):
        await manager.create_token("t", [])
    with raises(errors.InvalidInput):
        await manager.create_token("t", ["everything"])
    with raises(errors.InvalidInput):
        await manager.create_token("", ["read"])
    with raises(errors.InvalidName):
        await manager.create_token("t", ["read"], tenant="")
    with raises(errors.InvalidTime):
        await manager.create_token("t", ["read"], expires_at=env.clock.now())
    assert await manager.list_tokens() == ()
