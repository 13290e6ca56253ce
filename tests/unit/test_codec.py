"""JSON in, JSON out, bytes kept, and nothing that changes silently."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import codec
from headrace.errors import InvalidPayload, PayloadTooLarge

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text().filter(lambda key: key != "$bytes"), inner)
    ),
)


@given(json_values)
def test_what_goes_in_comes_out(value: object) -> None:
    assert codec.decode(codec.encode(value)) == value


@given(st.binary())
def test_bytes_come_back_as_bytes(value: bytes) -> None:
    assert codec.decode(codec.encode(value)) == value


@pytest.mark.parametrize(
    "value", [object(), {1j: 2}, [{"x": float("nan")}], float("inf"), {"$bytes": ""}]
)
def test_what_is_not_json_is_refused(value: object) -> None:
    with pytest.raises(InvalidPayload):
        codec.encode(value)


def test_the_limit_counts_encoded_bytes() -> None:
    assert codec.encode("é" * 4, limit=10) == '"éééé"'.encode()
    with pytest.raises(PayloadTooLarge):
        codec.encode("é" * 4, limit=9)


@pytest.mark.parametrize("stored", [b"", b"{", b'{"$bytes":"*"}', b'{"$bytes":7}'])
def test_stored_rubbish_is_named(stored: bytes) -> None:
    with pytest.raises(InvalidPayload):
        codec.decode(stored)
