"""Payloads written by column are, byte for byte, what the codec writes of the same values."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace import codec
from headrace.spark.sink.payloads import payload_texts

INNER = pa.struct(
    [
        ("text", pa.string()),
        ("whole", pa.int64()),
        ("real", pa.float64()),
        ("small", pa.float32()),
        ("flag", pa.bool_()),
        ("money", pa.decimal128(12, 2)),
        ("on", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("none", pa.null()),
        ("list", pa.list_(pa.string())),
        ("map", pa.map_(pa.string(), pa.float64())),
        ("deep", pa.struct([("a", pa.list_(pa.list_(pa.int32()))), ('q"', pa.int8())])),
        ("empty", pa.struct([])),
    ]
)
TEXTS = [
    "",
    "plain",
    'quote " and \\',
    "tab\tline\nend\r",
    "ünïcode ✓ 🚂",
    "\x00\x1f\x7f",
    "</script>",
]


def some(dice: random.Random, type_: pa.DataType) -> Any:
    """A random value, or None now and then."""
    if dice.random() < 0.15 or pa.types.is_null(type_):
        return None
    if pa.types.is_string(type_):
        return dice.choice(TEXTS)
    if pa.types.is_integer(type_):
        bits = type_.bit_width - 1
        return dice.choice([0, -1, 2**bits - 1, -(2**bits), dice.randrange(100)])
    if pa.types.is_float32(type_):
        return dice.choice([0.5, -1.25, 0.1, 1e30])
    if pa.types.is_floating(type_):
        return dice.choice([0.0, -0.0, 1.0, 0.1, 1e300, -2.5e-9, dice.random()])
    if pa.types.is_boolean(type_):
        return dice.random() < 0.5
    if pa.types.is_decimal(type_):
        return Decimal(dice.randrange(-(10**6), 10**6)).scaleb(-2)
    if pa.types.is_date(type_):
        return date(2026, 1, 1) + timedelta(days=dice.randrange(-9999, 9999))
    if pa.types.is_timestamp(type_):
        moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(
            seconds=dice.randrange(10**8), microseconds=dice.choice([0, 1, 120_000])
        )
        return moment if type_.tz else moment.replace(tzinfo=None)
    if pa.types.is_map(type_):
        return {dice.choice(TEXTS): some(dice, type_.item_type) for _ in range(dice.randrange(3))}
    if pa.types.is_list(type_):
        return [some(dice, type_.value_type) for _ in range(dice.randrange(4))]
    return {field.name: some(dice, field.type) for field in type_}


def arrow(values: list[Any], type_: pa.DataType) -> pa.Array:
    return pa.array([_pairs(value, type_) for value in values], type_)


def _pairs(value: Any, type_: pa.DataType) -> Any:
    """Arrow takes maps as pairs."""
    if value is None:
        return None
    if pa.types.is_map(type_):
        return list(value.items())
    if pa.types.is_list(type_):
        return [_pairs(item, type_.value_type) for item in value]
    if pa.types.is_struct(type_):
        return {field.name: _pairs(value[field.name], field.type) for field in type_}
    return value


def as_read(value: Any, type_: pa.DataType) -> Any:
    """The value as Arrow holds it: 32 bits of a float."""
    return pa.array([_pairs(value, type_)], type_)[0].as_py()


@pytest.mark.parametrize("seed", range(4))
def test_random_structs(seed: int) -> None:
    dice = random.Random(seed)
    values = [some(dice, INNER) for _ in range(200)]
    for value in values:
        if value is not None:
            value["small"] = as_read(value["small"], pa.float32())
    column = arrow(values, INNER)
    for start, length in ((0, 200), (37, 101), (199, 1)):
        texts, problems = payload_texts(column.slice(start, length))
        assert not problems
        wanted = [codec.encode(value).decode() for value in values[start : start + length]]
        assert texts.to_pylist() == wanted


def test_maps() -> None:
    type_ = pa.map_(pa.string(), pa.list_(pa.int64()))
    values = [{"a": [1, None], 'b"': None}, None, {}]
    texts, problems = payload_texts(arrow(values, type_))
    assert not problems
    assert texts.to_pylist() == ['{"a":[1,null],"b\\"":null}', "null", "{}"]


def test_times_are_written_in_utc_whatever_the_zone_of_the_session() -> None:
    moment = datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    column = pa.array([{"at": moment}], pa.struct([("at", pa.timestamp("us", "Europe/Paris"))]))
    texts, _ = payload_texts(column)
    assert texts.to_pylist() == ['{"at":"2026-07-01T10:00:00Z"}']


def test_json_text_is_read_and_written_again() -> None:
    given = ['{"a": 1}', None, ' [1, 2.50, "\\u00e9"] ', "null", '"x"', "12345678901234567890"]
    texts, problems = payload_texts(pa.array(given, pa.string()))
    assert not problems
    assert texts.to_pylist() == [
        '{"a":1}', "null", '[1,2.5,"é"]', "null", '"x"', "12345678901234567890",
    ]  # fmt: skip


def test_json_text_over_several_lines() -> None:
    texts, problems = payload_texts(pa.array(['{\n"a": 1}', "{}"], pa.string()))
    assert not problems
    assert texts.to_pylist() == ['{"a":1}', "{}"]


def test_text_that_is_no_json_is_a_problem_of_its_row_alone() -> None:
    given = ["{}", "", "{", "NaN", "1 2", "[1]"]
    texts, problems = payload_texts(pa.array(given, pa.string()))
    assert sorted(problems) == [1, 2, 3, 4]
    assert texts.to_pylist() == ["{}", "null", "null", "null", "null", "[1]"]
    assert "not JSON" in problems[2].message


def test_text_that_is_no_unicode_is_a_problem_of_its_row_alone() -> None:
    column = pa.array([b"{}", b'"\xff"', b"1"], pa.binary()).view(pa.string())
    texts, problems = payload_texts(column)
    assert list(problems) == [1]
    assert texts.to_pylist() == ["{}", "null", "1"]


def test_what_json_has_no_word_for_is_a_problem_of_its_row_alone() -> None:
    type_ = pa.struct([("x", pa.list_(pa.float64())), ("m", pa.map_(pa.string(), pa.int8()))])
    values = [{"x": [1.5], "m": [("a", 1)]}, {"x": [float("nan")], "m": None}, None]
    texts, problems = payload_texts(pa.array(values, type_))
    assert list(problems) == [1]
    assert "nan" in problems[1].message
    assert texts.to_pylist() == ['{"x":[1.5],"m":{"a":1}}', "null", "null"]


def test_words_that_the_codec_keeps_for_itself_are_refused() -> None:
    for key in ("$bytes", "$sealed"):
        type_ = pa.struct([(key, pa.string())])
        _, problems = payload_texts(pa.array([{key: "eA=="}], type_))
        assert "reserved" in problems[0].message
        _, problems = payload_texts(pa.array(["{}", f'{{"{key}": 1}}', f'{{"{key}": 1, "a": 2}}']))
        assert list(problems) == [1]


def test_times_that_python_has_no_value_for_are_a_problem_of_their_row_alone() -> None:
    type_ = pa.struct([("at", pa.timestamp("us", tz="UTC"))])
    inner = pa.array([0, 400_000_000_000_000_000], pa.int64()).view(pa.timestamp("us", tz="UTC"))
    column = pa.StructArray.from_arrays([inner], fields=list(type_))
    texts, problems = payload_texts(column)
    assert list(problems) == [1]
    assert texts.to_pylist() == ['{"at":"1970-01-01T00:00:00Z"}', "null"]
