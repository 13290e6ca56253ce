"""The key ring, the envelope, and that no verb of a store goes past the seal."""

from __future__ import annotations

import base64
import inspect
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from headrace import codec, connect, crypto, envelope
from headrace.crypto import KeyRing, Place
from headrace.envelope import Body, Sealed
from headrace.errors import CannotDecrypt, InvalidKeyRing, InvalidPayload
from headrace.manager import JobManager
from headrace.manager.sealed_store import SealedStore
from headrace.model import Job, State
from headrace.spec import JobSpec
from headrace.stores.base import JobStore

PLACE = Place("acme", "job-1", "payload")
KEY, OTHER = b"k" * 32, b"o" * 32
NOW = datetime(2026, 11, 1, tzinfo=UTC)


def ring(*ids: str) -> KeyRing:
    keys = {"a": KEY, "b": OTHER}
    return KeyRing({name: keys[name] for name in ids}, primary=ids[0])


# --- sealing -------------------------------------------------------------------------------------


@given(st.binary(max_size=2000))
def test_what_is_sealed_opens_in_its_place(contents: bytes) -> None:
    keys = ring("a")
    body = keys.seal(contents, PLACE)
    assert keys.open(body, PLACE) == contents
    assert envelope.unpack(envelope.pack(body)) == body
    assert envelope.unpack_text(envelope.pack_text(body)) == body


def test_the_format_of_version_1_does_not_change() -> None:
    """What was written by this version must open for ever: the bytes are frozen here."""
    keys = KeyRing({"2026-11": KEY}, primary="2026-11", random_bytes=lambda count: b"n" * count)
    packed = envelope.pack(keys.seal(b'{"n":1}', PLACE))
    frozen = (
        b'{"$sealed":{"v":1,"key":"2026-11",'
        b'"data":"bm5ubm5ubm5ubm5u4xmJkiuF+KroAsI7N1TeiLA+/E4uBgQ="}}'
    )
    assert packed == frozen
    assert (
        KeyRing({"2026-11": KEY}, primary="2026-11").open(envelope.unpack(frozen), PLACE)
        == b'{"n":1}'
    )


@pytest.mark.parametrize(
    "place",
    [
        PLACE._replace(tenant="other"),
        PLACE._replace(job_id="job-2"),
        PLACE._replace(field="result"),
        Place("acmejob-1", "", "payload"),
        Place("acm", "ejob-1", "payload"),
    ],
)
def test_it_opens_nowhere_else(place: Place) -> None:
    keys = ring("a")
    with pytest.raises(CannotDecrypt, match="moved here"):
        keys.open(keys.seal(b"x", PLACE), place)


def test_the_key_id_is_bound_too() -> None:
    """The same key under another name opens nothing that was sealed under the first."""
    body = KeyRing({"a": KEY}, primary="a").seal(b"x", PLACE)
    with pytest.raises(CannotDecrypt):
        KeyRing({"b": KEY}, primary="b").open(replace(body, key="b"), PLACE)


@given(st.data())
def test_any_changed_bit_is_noticed(data: st.DataObject) -> None:
    keys = ring("a")
    body = keys.seal(b"some contents", PLACE)
    assert body.data is not None
    at = data.draw(st.integers(0, len(body.data) - 1))
    bit = data.draw(st.integers(0, 7))
    changed = bytearray(body.data)
    changed[at] ^= 1 << bit
    with pytest.raises(CannotDecrypt):
        keys.open(replace(body, data=bytes(changed)), PLACE)


@pytest.mark.parametrize("length", [0, 1, 12, 27])
def test_what_was_cut_off_is_noticed(length: int) -> None:
    keys = ring("a")
    body = keys.seal(b"x", PLACE)
    assert body.data is not None
    with pytest.raises(CannotDecrypt, match="cut off"):
        keys.open(replace(body, data=body.data[:length]), PLACE)


def test_an_unknown_version_is_left_alone() -> None:
    keys = ring("a")
    with pytest.raises(CannotDecrypt, match="version 2"):
        keys.open(replace(keys.seal(b"x", PLACE), v=2), PLACE)


def test_each_key_opens_its_own_and_the_primary_seals() -> None:
    old = ring("a").seal(b"x", PLACE)
    both = ring("b", "a")
    assert both.open(old, PLACE) == b"x"
    assert both.seal(b"x", PLACE).key == "b"
    with pytest.raises(CannotDecrypt, match="not in the ring") as caught:
        ring("b").open(old, PLACE)
    assert caught.value.key_id == "a"


def test_no_two_nonces_are_the_same() -> None:
    keys = ring("a")
    sealed = {keys.seal(b"same", PLACE).data for _ in range(1000)}
    assert len({data[: crypto.NONCE_BYTES] for data in sealed if data is not None}) == 1000


# --- rings ---------------------------------------------------------------------------------------


def line(id: str, key: bytes) -> str:
    return f"{id}:{base64.b64encode(key).decode()}"


@pytest.mark.parametrize("between", ["\n", ",", ", ", "\n\n# old ones\n"])
def test_a_ring_is_read_from_lines_and_the_first_is_primary(between: str) -> None:
    keys = KeyRing.parse(f"# our keys\n{line('b', OTHER)}{between}{line('a', KEY)}\n")
    assert (keys.ids, keys.primary) == (("b", "a"), "b")
    assert keys.open(ring("a").seal(b"x", PLACE), PLACE) == b"x"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no key"),
        ("# nothing\n", "has no key"),
        ("word", "not written id:base64"),
        ("a:b64!", "not base64"),
        (line("a", b"short"), "'a' has 5 bytes"),
        (line("a", KEY + b"x"), "'a' has 33 bytes"),
        (line("", KEY), "key id ''"),
        (line("a b", KEY), "key id 'a b'"),
        (line("a" * 65, KEY), "1 to 64"),
        (f"{line('a', KEY)}\n{line('a', OTHER)}", "'a' stands twice"),
        (f"{line('a', KEY)}\n{line('b', KEY)}", "the same key"),
    ],
)
def test_a_bad_ring_is_refused_and_says_why_without_telling_a_key(text: str, told: str) -> None:
    with pytest.raises(InvalidKeyRing, match=told) as caught:
        KeyRing.parse(text)
    for secret in (KEY, OTHER, KEY + b"x"):
        assert base64.b64encode(secret).decode()[:20] not in str(caught.value)


def test_the_primary_must_be_in_the_ring() -> None:
    with pytest.raises(InvalidKeyRing, match="'b' is not in the ring"):
        KeyRing({"a": KEY}, primary="b")


def test_a_ring_prints_ids_and_no_keys() -> None:
    assert repr(ring("a", "b")) == "KeyRing(ids=('a', 'b'), primary='a')"


def test_a_new_key_is_a_line_of_a_ring() -> None:
    made = crypto.new_key("2026-11", lambda count: b"r" * count)
    assert made == line("2026-11", b"r" * 32)
    assert KeyRing.parse(crypto.new_key("x")).ids == ("x",)
    assert crypto.new_key("x") != crypto.new_key("x")
    with pytest.raises(InvalidKeyRing):
        crypto.new_key("no spaces")


def test_the_environment_holds_a_ring_or_names_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(line("f", KEY))
    assert KeyRing.from_environment({}) is None
    assert KeyRing.from_environment({"HEADRACE_KEYS": " "}) is None
    for value, primary in ((line("e", KEY), "e"), (f"@{file}", "f")):
        found = KeyRing.from_environment({"HEADRACE_KEYS": value})
        assert found is not None
        assert found.primary == primary
    with pytest.raises(InvalidKeyRing, match="cannot be read"):
        KeyRing.from_environment({"HEADRACE_KEYS": f"@{file}.not"})


def test_the_core_needs_no_cryptography_and_a_ring_says_what_to_install() -> None:
    script = """
import sys
sys.modules["cryptography"] = None
import headrace, headrace.cli, headrace.testing.conformance
from headrace.crypto import KeyRing
try:
    KeyRing({"a": b"k" * 32}, primary="a")
except headrace.HeadraceError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "pip install 'headrace[crypto]'" in done.stdout


# --- envelopes -----------------------------------------------------------------------------------


def test_a_value_that_is_sealed_says_so_and_nothing_else() -> None:
    packed = envelope.pack(ring("a").seal(b'"secret"', PLACE))
    value = codec.decode(packed)
    assert value == Sealed("a")
    assert str(value) == repr(value) == "encrypted with key a"
    assert value != Sealed("b")
    assert len({Sealed("a"), Sealed("a"), Sealed("b")}) == 2
    with pytest.raises(InvalidPayload):
        codec.encode(value)


@pytest.mark.parametrize(
    "encoded",
    [
        b'{"$sealed":5}',
        b'{"$sealed":{}}',
        b'{"$sealed":{"v":1,"key":7,"data":"AAAA"}}',
        b'{"$sealed":{"v":1,"key":"a","data":"not base64"}}',
        b'{"$sealed":{"v":1,"key":"\\u001b[2J","data":"AAAA"}}',
    ],
)
def test_a_malformed_envelope_is_an_error_to_read(encoded: bytes) -> None:
    with pytest.raises(CannotDecrypt):
        codec.decode(encoded)
    with pytest.raises(CannotDecrypt):
        ring("a").open(replace(envelope.unpack(encoded), key="a"), PLACE)


@pytest.mark.parametrize("value", [{"$sealed": 1}, {"$bytes": "AAAA"}])
def test_reserved_keys_cannot_be_submitted(value: object) -> None:
    with pytest.raises(InvalidPayload, match="reserved"):
        codec.encode(value)
    assert codec.decode(codec.encode([value])) == [value]
    assert codec.decode(codec.encode({"$sealed": 1, "more": 2})) == {"$sealed": 1, "more": 2}


@pytest.mark.parametrize(
    "text",
    [
        "sealed:v1:",
        "sealed:v1:a:",
        "sealed:v1:a b:AAAA",
        "sealed:v1:a:AA AA",
        "sealed:v2:a:AAAA",
        "",
    ],
)
def test_text_that_only_begins_like_an_envelope_is_text(text: str) -> None:
    assert not envelope.is_sealed_text(text)


def test_a_message_with_bad_base64_is_damaged() -> None:
    body = envelope.unpack_text("sealed:v1:a:AAA")
    assert (body.data, body.why) == (None, "its envelope is damaged")


def test_a_withheld_envelope_has_no_ciphertext() -> None:
    body = Body(1, "a", b"cipher")
    assert envelope.pack(envelope.withheld(body)) == b'{"$sealed":{"v":1,"key":"a"}}'
    assert envelope.told(envelope.withheld(body, "why")).endswith("it cannot be decrypted: why")


# --- the store behind the seal -------------------------------------------------------------------

SEALED_ELSEWHERE = {
    "annotate": "a note names no tenant: it is sealed where it is made, by leases.annotate",
    "rewrite": "it is handed what is sealed already, by rotation.reencrypt",
}
CARRIERS = ("Job", "Insertion", "Inserted", "Commit", "Note", "Rewrite")


def carrying() -> Iterator[str]:
    """The verbs that take or give contents of jobs."""
    for name, verb in inspect.getmembers(JobStore, inspect.isfunction):
        words = " ".join(map(str, inspect.get_annotations(verb).values()))
        for mark in "[],|()":
            words = words.replace(mark, " ")
        if not name.startswith("_") and set(words.split()) & set(CARRIERS):
            yield name


def test_no_verb_that_carries_contents_goes_past_the_seal() -> None:
    verbs = set(carrying())
    assert {"insert", "commit", "claim", "claim_shares", "get", "find", "annotate"} <= verbs
    sealing = {
        name
        for name, member in inspect.getmembers(SealedStore, inspect.isfunction)
        if not name.startswith("_") and "_sealing" in inspect.getsource(member)
    }
    assert verbs - SEALED_ELSEWHERE.keys() == sealing


async def test_without_a_ring_nothing_is_copied() -> None:
    async with await connect("memory:") as manager:
        await manager.submit(JobSpec(type="t", id="j", payload=1))
        assert await manager.get("j") is (await manager.store.get(["j"]))["j"]


async def test_every_view_of_a_manager_has_its_keys() -> None:
    keys = ring("a")
    async with await connect("memory:", keys=keys) as manager:
        assert manager.keys is manager.scoped("acme").keys is keys
        assert JobManager(manager.store, clock=manager.clock).keys is None


async def test_a_job_prints_neither_ciphertext_nor_more_than_it_shows() -> None:
    async with await connect("memory:", keys=ring("a")) as manager:
        job = (await manager.submit(JobSpec(type="t", payload="word"))).job
        row = (await manager.store.get([job.id]))[job.id]
        assert row.payload_json.decode()[45:60] not in repr(job)
        seen = await JobManager(manager.store, clock=manager.clock).get(job.id)
        assert row.payload_json.decode()[45:60] not in repr(seen)
        assert "word" not in repr(seen)


def test_a_job_is_sealed_if_any_of_its_contents_is() -> None:
    job = Job(id="j", type="t", state=State.PENDING, created_at=NOW, run_at=NOW, updated_at=NOW)
    packed = envelope.pack(Body(1, "a"))
    assert not job.is_sealed
    for field in ("payload_json", "result_json", "checkpoint_json", "log_json"):
        assert replace(job, **{field: packed}).is_sealed
