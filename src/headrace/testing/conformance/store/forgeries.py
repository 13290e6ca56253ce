"""commit and update: a change computed from a row that is not the stored one is left alone."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from headrace.lifecycle import Complete, Update, token_of
from headrace.model import DependencyKind, Edge, Job, State
from headrace.stores.base import Commit, EventQuery, JobStore
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.store.suite import (
    T0,
    at,
    change,
    claim,
    insert,
    job,
    opened,
    stored,
    suite,
)

DONE = Complete(token=None)

INVENTED = token_of(1, "invented")

LIES: dict[str, Any] = {
    "tenant": "mallory",
    "queue": "other",
    "type": "other",
    "priority": 0,
    "limit_key": "other",
    "state": State.CANCELLING,
    "token": INVENTED,
    "assignee": "mallory's worker",
    "attempt": 7,
    "failures": 1,
    "losses": 1,
}
"""What the row of a running job may be said to hold, and does not."""


async def _left_alone(store: JobStore, row: Job, lie: Job, *others: Job) -> None:
    """Neither alone, nor beside honest changes, nor together with them is it written."""
    cursor, tallies = await store.tail(), await store.count(T0)
    made = change(lie, DONE, now=at(5))
    alone = await store.commit(Commit(changes=[made]))
    assert list(alone.applied) == [False]
    together = await store.commit(
        Commit(changes=[*(change(one, DONE, now=at(5)) for one in others), made], together=True)
    )
    assert not any(together.applied)
    assert await stored(store, row.id) == row
    assert await store.tail() == cursor
    assert list(await store.count(T0)) == list(tallies)
    assert await store.events(EventQuery(tenant="mallory")) == []


def _register(field: str, lie: object) -> None:
    @suite.case("commit", f"{field}: a lie about it is told from the stored row")
    async def told(env: Env) -> None:
        store = await opened(env)
        await insert(store, job("a", tenant="acme"), job("b"))
        rows = {row.id: row for row in await claim(store, limit=2)}
        await _left_alone(store, rows["a"], replace(rows["a"], **{field: lie}), rows["b"])


for _field, _lie in LIES.items():
    _register(_field, _lie)


@suite.case(
    "update", "a lie about whose job it is, its lane or its state is told from the stored row"
)
async def updates_of_another(env: Env) -> None:
    store = await opened(env)
    await insert(store, job("a", tenant="acme"), job("b"))
    rows = {row.id: row for row in await claim(store, limit=2)}
    cursor = await store.tail()
    for field in ("tenant", "queue", "type", "priority", "limit_key", "state"):
        lie = replace(rows["a"], **{field: LIES[field]})
        for read in (lie, replace(lie, seq=0)):
            made = change(read, Update(tags=("mine",), priority=4), now=at(5))
            assert list(await store.update([made])) == [False], field
    assert await stored(store, "a") == rows["a"]
    assert await store.tail() == cursor
    swapped = replace(rows["b"], id="a", tenant="acme")
    await store.update([change(swapped, Update(priority=4))])  # the seq is a hint: see commit
    assert await stored(store, "b") == rows["b"]
    assert await store.events(EventQuery(tenant="mallory")) == []


@suite.case("commit", "an invented lease does not end a job that nobody has claimed")
async def invented_lease(env: Env) -> None:
    store = await opened(env)
    (row,) = await insert(store, job("a", tenant="acme"))
    lie = replace(
        row, tenant="mallory", state=State.RUNNING, token=INVENTED, assignee="w", attempt=1
    )
    await _left_alone(store, row, lie)


@suite.case("commit", "the place of one job under the id of another: neither is written")
async def another_id(env: Env) -> None:
    store = await opened(env)
    child = job("child", tenant="acme")
    await insert(store, job("a"), job("secret", tenant="acme", run_at=at(100)))
    await insert(
        store,
        child,
        waits=True,
        edges=[Edge("secret", "child", DependencyKind.AFTER)],
        parents={"secret": None},
    )
    (own,) = await claim(store)
    secret = await stored(store, "secret")
    for lie in (replace(own, id="secret"), replace(own, seq=secret.seq)):
        answer = await store.commit(Commit(changes=[change(lie, DONE)]))
        # The seq is a hint: a store that finds rows by id alone may write what holds of the id's row.
        assert not answer.touched
        assert await stored(store, "secret") == secret
    assert len(await store.events(EventQuery(job_id="secret"))) == 1
    assert (await store.edges(parent_id="secret"))[0].outcome is None
