"""Statistics of a data file for the Delta log: what lets readers pass a file over, and never wrongly.

A reader that finds statistics for some columns of a file takes the others for bounded, too: delta-rs turns a
missing bound into a comparison with null, which is true of no row. So every column that is not nested gets
its bounds, and a file with a column that cannot be bounded gets none at all but the number of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TEXT_CHARS_MAX = 64
"""Of a bound of text; an id fits."""

_GREATEST = "\U0010ffff"


def statistics_of(rows: pa.Table) -> dict[str, Any]:
    """In the words of the Delta protocol."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for field in rows.schema:
        if pa.types.is_nested(field.type):
            continue
        nulls[field.name] = rows[field.name].null_count
        if nulls[field.name] == rows.num_rows:
            continue  # readers know it by the count
        bounds = pc.min_max(rows[field.name]).as_py()
        if not (_can_be_told(bounds["min"]) and _can_be_told(bounds["max"])):
            return {"numRecords": rows.num_rows}
        low[field.name] = _lower(bounds["min"])
        high[field.name] = _upper(bounds["max"])
    return {"numRecords": rows.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}


def are_whole(row: Mapping[str, Any]) -> bool:
    """Whether a file's statistics, as delta-rs spreads them out, bound every column that they name."""
    counts = {name.removeprefix("null_count."): row[name] for name in row if "null_count." in name}
    if all(count is None for count in counts.values()):
        return True
    return all(
        count is not None
        and (
            count == row["num_records"]
            or (row.get(f"min.{name}") is not None and row.get(f"max.{name}") is not None)
        )
        for name, count in counts.items()
    )


def _can_be_told(bound: Any) -> bool:
    """NaN and the infinities are no JSON; a column with nothing but NaN has no bounds."""
    return bound is not None and not (isinstance(bound, float) and not math.isfinite(bound))


def _lower(bound: Any) -> Any:
    return bound[:TEXT_CHARS_MAX] if isinstance(bound, str) else _told(bound)


def _upper(bound: Any) -> Any:
    if not isinstance(bound, str):
        return _told(bound)
    # Cut short it would lie below the values that it stands for.
    return bound if len(bound) <= TEXT_CHARS_MAX else bound[:TEXT_CHARS_MAX] + _GREATEST


def _told(value: Any) -> Any:
    match value:
        case datetime():
            return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        case date():
            return value.isoformat()
        case _:
            return value
