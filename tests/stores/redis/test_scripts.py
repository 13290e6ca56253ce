"""The scripts: their headers tell the truth, and the server may forget them at any time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from headrace.stores import redis as package
from headrace.stores.base import GATE, Backlog, Commit, Record, Rewrite, Share
from headrace.stores.redis import RedisStore
from headrace.stores.redis.scripts import Script, _header
from tests.stores.redis.jobs import NOW, completion, draft, insert, request

FOLDER = Path(package.__file__).parent / "scripts"
NAMES = sorted(file.stem for file in FOLDER.glob("*.lua"))


@pytest.mark.parametrize("name", NAMES)
def test_the_header_names_keys_arguments_answer_and_errors(name: str) -> None:
    text = (FOLDER / f"{name}.lua").read_text("utf-8")
    assert text.startswith(f"-- {name}: ")
    assert {"keys", "args", "returns", "errors"} <= _header(text).keys()
    used = [
        (FOLDER / "shared" / f"{part}.lua").read_text("utf-8")
        for part in _header(text).get("uses", "").split()
    ]
    for key in Script(name).key_names:
        assert any(f"K.{key}" in part for part in (text, *used)), f"{name} never touches {key}"
    derives = any("K.root" in part for part in (text, *used))
    assert derives == ("derived" in _header(text)), "keys that are not passed must be accounted for"


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
