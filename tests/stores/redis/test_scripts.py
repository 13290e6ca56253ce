"""The scripts: their headers tell the truth, and the server may forget them at any time."""

from __future__ import annotations

import asyncio
import re

import pytest
from msgspec.structs import replace

from headrace.stores.base import GATE, Backlog, Commit, Record, Rewrite, Share
from headrace.stores.redis import RedisStore
from headrace.stores.redis.scripts import Script, header_of, parts, texts
from tests.stores.redis.jobs import NOW, completion, draft, insert, request

NAMES = sorted(texts())


@pytest.mark.parametrize("name", NAMES)
def test_the_header_names_keys_arguments_answer_and_errors(name: str) -> None:
    script, header = Script(name), header_of(texts()[name])
    assert re.match(r"-- [A-Z].*\n", texts()[name]), "what it does comes first"
    assert {"keys", "args", "returns", "errors"} <= header.keys()
    assert set(script.key_names) == set(re.findall(r"\bK\.(\w+)", script.text))
    derives = "K.root" in script.text
    assert derives == ("derived" in header), "keys that are not passed must be accounted for"


@pytest.mark.parametrize("name", sorted(parts()))
def test_a_part_names_the_keys_that_it_touches(name: str) -> None:
    text = parts()[name]
    assert text.startswith(f"-- {name}: ")
    assert set(header_of(text).get("keys", "").split()) == set(re.findall(r"\bK\.(\w+)", text))


def test_a_part_comes_after_those_that_it_uses() -> None:
    for name in NAMES:
        before: set[str] = set()
        for part in Script(name).parts:
            assert set(header_of(parts()[part]).get("uses", "").split()) <= before, (name, part)
            before.add(part)


@pytest.mark.parametrize("name", NAMES)
def test_no_time_and_no_chance_of_its_own(name: str) -> None:
    text = Script(name).text
    assert "math.random" not in text
    assert "'TIME'" not in text
    assert "os." not in text


async def test_a_script_flush_in_the_middle_is_not_noticed(store: RedisStore) -> None:
    await insert(store, *(draft() for _ in range(200)))

    async def flush() -> None:
        for _ in range(20):
            await store._server.read("SCRIPT", "FLUSH")
            await asyncio.sleep(0.002)

    async def work() -> int:
        done = 0
        while claimed := await store.claim(request(5)):
            committed = await store.commit(Commit(changes=[completion(job) for job in claimed]))
            assert all(committed.applied)
            done += len(claimed)
        return done

    *done, _ = await asyncio.gather(work(), work(), flush())
    assert sum(n for n in done if n) == 200


async def test_every_verb_teaches_the_server_its_script_again(store: RedisStore) -> None:
    (job,) = await insert(store, draft())
    share = Share(
        tenant="default", queue="default", type="send", priority=2, limit_key=None, jobs=1
    )
    gate = Record(kind=GATE, name="default")
    rewrite = Rewrite(job_id=job.id, version=1, payload_json=b"1")
    wanted = [
        (store.put_record(gate), True),
        (store.backlog(), Backlog(1, 4)),
        (store.rewrite([rewrite]), [True]),
        (store.claim(request()), []),
        (store.claim_shares(request(), [share], [gate]), None),
        (store.delete_record(replace(gate, version=1)), True),
        (store.held(NOW, ["default"]), []),
    ]
    for verb, answer in wanted:
        await store._server.read("SCRIPT", "FLUSH")
        assert await verb == answer
    await store._server.read("SCRIPT", "FLUSH")
    (head,) = await store.heads(request())
    await store._server.read("SCRIPT", "FLUSH")
    assert len(await store.claim_shares(request(), [share], []) or ()) == head.jobs == 1
