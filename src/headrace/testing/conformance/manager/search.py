"""Looking for jobs by anything that is known of them: rows without contents, and how far was looked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace import errors
from headrace.manager import JobManager
from headrace.policy import Policy
from headrace.testing.conformance.kit import Env, raises
from headrace.testing.conformance.manager.encryption import (
    SECRET,
    case,
    new_ring,
    old_ring,
    with_keys,
)
from headrace.testing.conformance.manager.suite import submit, suite, take

POLICY = Policy(lease_seconds=60.0, max_attempts=1)


async def ids(manager: JobManager, **filters: Any) -> list[str]:
    return [row.id for row in await manager.search(newest_first=False, **filters)]


@suite.case("search", "every filter narrows, alone and with others")
async def filters(env: Env) -> None:
    manager = await env.manager(POLICY)
    begin = env.clock.now()
    await submit(manager, "mail-1", queue="mail", payload={"to": "Ann"}, correlation_id="c")
    await submit(manager, "mail-2", queue="mail", payload={"to": "Bob"}, key="k", priority=0)
    env.clock.advance(10)
    await submit(manager, "web-1", type="load", tags=("x",), delay_seconds=100)
    _, token = await take(manager, "mail-1")
    await manager.fail("mail-1", token, "user 17 is gone", code="E404")
    job = await manager.get("mail-2")
    env.clock.advance(10)
    await manager.complete("mail-2", job.token, {"ok": True})
    everything = ["mail-1", "mail-2", "web-1"]
    assert await ids(manager) == everything
    assert [row.id for row in await manager.search()] == everything[::-1]
    for wanted, found in (
        ({"queues": ["mail"]}, ["mail-1", "mail-2"]),
        ({"types": ["load"]}, ["web-1"]),
        ({"states": ["dead"]}, ["mail-1"]),
        ({"tags": ["x"]}, ["web-1"]),
        ({"assignee": "w"}, ["mail-1", "mail-2"]),
        ({"created_from": begin + timedelta(seconds=10)}, ["web-1"]),
        ({"ended_from": begin + timedelta(seconds=20)}, ["mail-2"]),
        ({"ended_before": begin + timedelta(seconds=20)}, ["mail-1"]),
        ({"due_from": begin + timedelta(seconds=60)}, ["web-1"]),
        ({"due_before": begin + timedelta(seconds=60)}, ["mail-1", "mail-2"]),
        ({"priorities": [0]}, ["mail-2"]),
        ({"categories": ["temporary"]}, ["mail-1"]),
        ({"codes": ["E404", "other"]}, ["mail-1"]),
        ({"key": "k"}, ["mail-2"]),
        ({"correlation_id": "c"}, ["mail-1"]),
        ({"id_prefix": "mail"}, ["mail-1", "mail-2"]),
        ({"text": "ANN"}, ["mail-1"]),
        ({"text": "to", "queues": ["web"]}, []),
    ):
        assert await ids(manager, **wanted) == found, wanted
    row = (await manager.search(id_prefix="mail-1")).rows[0]
    assert (row.code, row.payload_bytes, row.result_bytes) == ("E404", len(b'{"to":"Ann"}'), 0)
    assert row.error_group is not None
    assert await ids(manager, error_group=row.error_group) == ["mail-1"]
    assert await ids(manager.scoped("other")) == []


@suite.case("search", "it looks at so many jobs, says how far it came, and goes on from there")
async def bounded(env: Env) -> None:
    manager = await env.manager(POLICY)
    begin = env.clock.now()
    for number in range(10):
        await submit(manager, f"j{number}", priority=0 if number in (1, 8) else 2)
        env.clock.advance(1)
    page = await manager.search(priorities=[0], look_max=4)
    assert ([row.id for row in page], page.looked) == (["j8"], 4)
    assert page.looked_until == begin + timedelta(seconds=6)
    assert page.cursor is not None
    page = await manager.search(priorities=[0], look_max=4, cursor=page.cursor)
    assert (page.rows, page.looked) == ((), 4)
    assert page.cursor is not None
    page = await manager.search(priorities=[0], look_max=4, cursor=page.cursor)
    assert [row.id for row in page] == ["j1"]
    assert (page.looked, page.cursor) == (2, None)
    found, cursor = [], None
    while True:
        page = await manager.search(limit=3, cursor=cursor)
        found += [row.id for row in page]
        if (cursor := page.cursor) is None:
            break
    assert found == [f"j{number}" for number in reversed(range(10))]
    wrongs: tuple[dict[str, Any], ...] = ({"limit": 0}, {"look_max": 0}, {"limit": 10**9})
    for wrong in wrongs:
        with raises(errors.InvalidLimit):
            await manager.search(**wrong)
    with raises(errors.InvalidCursor):
        await manager.search(cursor="x")


@case("text is looked for where there is a key; what cannot be read is counted")
async def sealed(env: Env) -> None:
    policy = Policy(lease_seconds=10.0, encrypted=True)
    manager = await env.manager(policy, keys=old_ring())
    await submit(manager, "j", payload={"to": SECRET})
    assert [row.id for row in await manager.search(text=SECRET)] == ["j"]
    blind = await with_keys(manager, new_ring()).search(text=SECRET)
    assert (blind.rows, blind.looked, blind.withheld) == ((), 1, 1)
