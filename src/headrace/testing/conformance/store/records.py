"""records, put_record, delete_record: small documents, each replaced only by who has read it."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from headrace.stores.base import GATE, JobStore, Record
from headrace.testing.conformance.kit import Env
from headrace.testing.conformance.store.suite import insert, job, opened, suite

KIND = "schedule"


async def _read(store: JobStore, name: str, kind: str = KIND) -> Record:
    (record,) = await store.records(kind, [name])
    return record


@suite.case("put_record", "a new one is version 1; each replacement is the next")
async def versions(env: Env) -> None:
    store = await opened(env)
    assert await store.put_record(Record(kind=KIND, name="a", body_json=b'{"n":1}'))
    first = await _read(store, "a")
    assert first == Record(kind=KIND, name="a", version=1, body_json=b'{"n":1}')
    for number in range(2, 6):
        body = b'{"n":%d}' % number
        assert await store.put_record(replace(await _read(store, "a"), body_json=body))
        assert await _read(store, "a") == replace(first, version=number, body_json=body)


@suite.case("put_record", "at any other version than the stored one: refused, nothing written")
async def stale(env: Env) -> None:
    store = await opened(env)
    assert not await store.put_record(Record(kind=KIND, name="a", version=1))
    assert not await store.records(KIND)
    for body in (b"1", b"2", b"3"):
        (found,) = await store.records(KIND, ["a"]) or [Record(kind=KIND, name="a")]
        assert await store.put_record(replace(found, body_json=body))
    for version in (0, 1, 2, 4, 999):
        late = Record(kind=KIND, name="a", version=version, body_json=b'"late"')
        assert not await store.put_record(late)
        assert not await store.delete_record(late)
    assert await _read(store, "a") == Record(kind=KIND, name="a", version=3, body_json=b"3")


@suite.case("put_record", "the same body is a new version, too")
async def same_body(env: Env) -> None:
    store = await opened(env)
    assert await store.put_record(Record(kind=KIND, name="a", body_json=b"7"))
    assert await store.put_record(await _read(store, "a"))
    assert (await _read(store, "a")).version == 2


@suite.case("put_record", "of many that create the same name, one wins")
async def one_creator(env: Env) -> None:
    store = await opened(env)
    answers = await asyncio.gather(
        *(
            store.put_record(Record(kind=KIND, name="a", body_json=b"%d" % number))
            for number in range(20)
        )
    )
    assert sum(answers) == 1
    winner = b"%d" % answers.index(True)
    assert await _read(store, "a") == Record(kind=KIND, name="a", version=1, body_json=winner)


@suite.case("put_record", "of many that replace the same version, one wins")
async def one_writer(env: Env) -> None:
    store = await opened(env)
    assert await store.put_record(Record(kind=KIND, name="a"))
    read = await _read(store, "a")
    answers = await asyncio.gather(
        *(store.put_record(replace(read, body_json=b"%d" % number)) for number in range(20))
    )
    assert sum(answers) == 1
    assert await _read(store, "a") == replace(
        read, version=2, body_json=b"%d" % answers.index(True)
    )


@suite.case("put_record", "counting by reading and replacing loses no count")
async def counters(env: Env) -> None:
    store = await opened(env)
    assert await store.put_record(Record(kind=KIND, name="a", body_json=b"0"))

    async def add_five() -> None:
        added = 0
        while added < 5:
            read = await _read(store, "a")
            added += await store.put_record(
                replace(read, body_json=b"%d" % (int(read.body_json) + 1))
            )

    await asyncio.gather(*(add_five() for _ in range(6)))
    assert await _read(store, "a") == Record(kind=KIND, name="a", version=31, body_json=b"30")


@suite.case("put_record", "a body comes back byte for byte")
async def bodies(env: Env) -> None:
    store = await opened(env)
    odd = {
        "spaces": b'{ "b" : 1,\n  "a" : 1.0 }',
        "twice": b'{"a":1,"a":2}',
        "text": '"ünï – ☃ 𝄞"'.encode(),
        "escapes": b'"\\u00e9\\u0000\\/"',
        "large": b'"' + b"x" * 100_000 + b'"',
        "number": b"12345678901234567890.10",
    }
    for name, body in odd.items():
        assert await store.put_record(Record(kind=KIND, name=name, body_json=body))
    assert {one.name: one.body_json for one in await store.records(KIND)} == odd


@suite.case("records", "all of a kind or the named ones, each once, in order of name")
async def by_name(env: Env) -> None:
    store = await opened(env)
    for name in ("b", "a", "C", "é", "aa", "B"):
        assert await store.put_record(Record(kind=KIND, name=name))
    assert await store.put_record(Record(kind="other", name="a"))
    assert [one.name for one in await store.records(KIND)] == ["B", "C", "a", "aa", "b", "é"]
    named = await store.records(KIND, ["b", "nobody", "B", "b"])
    assert [(one.kind, one.name) for one in named] == [(KIND, "B"), (KIND, "b")]
    assert not await store.records(KIND, [])
    assert not await store.records("nothing")
    assert [one.kind for one in await store.records("other")] == ["other"]


@suite.case("records", "names and kinds are any text, and none is taken for another")
async def odd_names(env: Env) -> None:
    store = await opened(env)
    texts = [" ", "'", '"', "\\", "%", "_", "*", "a*", "[a]", "a:b", "a:b:c", "{a}", "a/b", "$1"]
    texts += ["a\nb", "A", "a", "á", "a\u0301", "null", "𝄞", "x" * 256, "; DROP TABLE jobs; --"]
    pairs = [(KIND, text) for text in texts] + [(text, "a") for text in texts]
    pairs += [("a:b", "c"), ("a", "b:c"), ("a|b", "c"), ("a", "b|c")]
    for number, (kind, name) in enumerate(pairs):
        body = b"%d" % number
        assert await store.put_record(Record(kind=kind, name=name, body_json=body)), (kind, name)
    for number, (kind, name) in enumerate(pairs):
        assert (await _read(store, name, kind)).body_json == b"%d" % number
    everything = await store.records(KIND)
    assert [one.name for one in everything] == sorted(texts)


@suite.case("delete_record", "only at the version that is stored; True once")
async def delete(env: Env) -> None:
    store = await opened(env)
    assert await store.put_record(Record(kind=KIND, name="a"))
    assert await store.put_record(Record(kind=KIND, name="b"))
    first = await _read(store, "a")
    assert await store.put_record(first)
    assert not await store.delete_record(first)
    assert not await store.delete_record(Record(kind=KIND, name="a"))
    assert not await store.delete_record(Record(kind=KIND, name="never"))
    assert not await store.delete_record(Record(kind=KIND, name="never", version=1))
    second = await _read(store, "a")
    assert await store.delete_record(replace(second, body_json=b"of no account"))
    assert not await store.delete_record(second)
    assert [one.name for one in await store.records(KIND)] == ["b"]


@suite.case("delete_record", "what was deleted is gone for its readers, and starts again at 1")
async def again(env: Env) -> None:
    store = await opened(env)
    assert await store.put_record(Record(kind=KIND, name="a", body_json=b"1"))
    assert await store.put_record(await _read(store, "a"))
    old = await _read(store, "a")
    assert await store.delete_record(old)
    assert not await store.put_record(old)
    assert not await store.records(KIND, ["a"])
    assert await store.put_record(Record(kind=KIND, name="a", body_json=b"2"))
    assert await _read(store, "a") == Record(kind=KIND, name="a", version=1, body_json=b"2")
    assert not await store.put_record(old)
    assert not await store.delete_record(old)


@suite.case("delete_record", "of a deletion and a replacement of the same version, one wins")
async def delete_or_replace(env: Env) -> None:
    store = await opened(env)
    names = [f"n{number}" for number in range(10)]
    for name in names:
        assert await store.put_record(Record(kind=KIND, name=name))
    reads = await store.records(KIND)
    answers = await asyncio.gather(
        *(verb(read) for read in reads for verb in (store.put_record, store.delete_record))
    )
    replaced, deleted = answers[::2], answers[1::2]
    assert all(one != other for one, other in zip(replaced, deleted, strict=True))
    left = {one.name: one.version for one in await store.records(KIND)}
    assert left == {read.name: 2 for read, won in zip(reads, replaced, strict=True) if won}


@suite.case("put_record", "leaves jobs and the event log alone")
async def apart(env: Env) -> None:
    store = await opened(env)
    (row,) = await insert(store, job("a"))
    cursor = await store.tail()
    assert await store.put_record(Record(kind=KIND, name="a"))
    assert await store.put_record(Record(kind=GATE, name="a"))
    assert await store.delete_record(await _read(store, "a"))
    assert await store.get(["a"]) == {"a": row}
    assert await store.tail() == cursor
