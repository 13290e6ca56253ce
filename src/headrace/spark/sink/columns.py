"""Which columns a DataFrame of jobs may have, and of what types. Checked before the first row moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import types as t

from headrace import validation
from headrace.errors import InvalidInput

INTEGERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_PLAIN = (
    *INTEGERS,
    t.StringType,
    t.BooleanType,
    t.FloatType,
    t.DoubleType,
    t.DecimalType,
    t.DateType,
    t.TimestampType,
    t.TimestampNTZType,
    t.NullType,
)
"""What a payload may hold besides structs, maps and arrays."""


def check_schema(schema: t.StructType, *, type_given: bool) -> None:
    """Raise the InvalidInput that says which column is wrong, and what it may be."""
    seen: set[str] = set()
    for field in schema.fields:
        rule = KNOWN.get(field.name)
        if rule is None:
            raise InvalidInput(
                f"there is no column {field.name!r} of a job: known are {', '.join(KNOWN)}; put what the "
                f"job needs into its payload, and drop the rest; {validation.UNCHANGED}"
            )
        if field.name in seen:
            raise InvalidInput(f"the column {field.name!r} stands twice; {validation.UNCHANGED}")
        seen.add(field.name)
        rule(field.name, field.dataType)
    if "type" not in seen and not type_given:
        raise InvalidInput(
            'the rows do not say what to run: add a column "type", or .option("type", …); '
            f"{validation.UNCHANGED}"
        )


def _text(name: str, type_: t.DataType) -> None:
    if not isinstance(type_, t.StringType | t.NullType):
        _refuse(name, type_, "a string")


def _priority(name: str, type_: t.DataType) -> None:
    if not isinstance(type_, (t.StringType, t.NullType, *INTEGERS)):
        _refuse(name, type_, "a whole number or a string")


def _time(name: str, type_: t.DataType) -> None:
    if not isinstance(type_, t.TimestampType | t.NullType):
        _refuse(name, type_, "a timestamp (with a time zone: not timestamp_ntz)")


def _tags(name: str, type_: t.DataType) -> None:
    listed = isinstance(type_, t.ArrayType) and isinstance(type_.elementType, t.StringType)
    mapped = (
        isinstance(type_, t.MapType)
        and isinstance(type_.keyType, t.StringType)
        and isinstance(type_.valueType, (t.StringType, *INTEGERS))
    )
    if not (listed or mapped or isinstance(type_, t.NullType)):
        _refuse(
            name, type_, "an array of strings, or a map from strings to strings or whole numbers"
        )


def _ids(name: str, type_: t.DataType) -> None:
    listed = isinstance(type_, t.ArrayType) and isinstance(type_.elementType, t.StringType)
    if not (listed or isinstance(type_, t.StringType | t.NullType)):
        _refuse(name, type_, "a string or an array of strings")


def _payload(name: str, type_: t.DataType) -> None:
    if not isinstance(type_, t.StructType | t.MapType | t.StringType | t.NullType):
        _refuse(name, type_, "a struct, a map, or a string of JSON")
    _check_json(name, type_)


def _check_json(place: str, type_: t.DataType) -> None:
    match type_:
        case t.StructType():
            if len(set(type_.names)) < len(type_.names):
                raise InvalidInput(
                    f"two fields of {place} have one name: JSON would keep only one; "
                    f"{validation.UNCHANGED}"
                )
            for field in type_.fields:
                _check_json(f"{place}.{field.name}", field.dataType)
        case t.ArrayType():
            _check_json(f"{place}[]", type_.elementType)
        case t.MapType():
            if not isinstance(type_.keyType, t.StringType):
                _refuse(f"the key of {place}", type_.keyType, "a string, as in all JSON")
            _check_json(f"{place}{{}}", type_.valueType)
        case _:
            if not isinstance(type_, _PLAIN):
                _refuse(
                    place,
                    type_,
                    "a string, boolean, number, date, timestamp, struct, map or array "
                    "(encode bytes as text yourself, for example with base64)",
                )


def _refuse(name: str, type_: t.DataType, wanted: str) -> None:
    raise InvalidInput(
        f"the column {name} is {type_.simpleString()[:200]}; it must be {wanted}; {validation.UNCHANGED}"
    )


KNOWN: Mapping[str, Callable[[str, t.DataType], None]] = {
    "type": _text,
    "payload": _payload,
    "queue": _text,
    "priority": _priority,
    "run_at": _time,
    "tags": _tags,
    "key": _text,
    "tenant": _text,
    "after": _ids,
}
