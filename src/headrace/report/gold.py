"""The gold tables of a lake, read without Spark: the part that a report is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from headrace.errors import InvalidInput
from headrace.report import rollup

TABLES = (
    "throughput",
    "latency",
    "outcomes",
    "errors",
    "retries",
    "workers",
    "tenants",
    "slo",
    "backlog",
    "paths",
)
COMPARED = ("throughput", "latency", "outcomes", "retries", "errors")
DEFAULT_SPAN = timedelta(days=1)
LONG = rollup.SHORT
"""From here on a span in whole hours is as good as the one asked for; a shorter one begins with its hour."""
QUEUES_SHOWN_MAX = 10
_NEVER = datetime.fromtimestamp(0, UTC)


class NoGold(InvalidInput):
    """There is nothing to report at that path."""

    code = "NO_GOLD"


class LakeDamaged(InvalidInput):
    """A file that the lake's tables refer to is gone, or cannot be read."""

    code = "LAKE_DAMAGED"


@dataclass(frozen=True)
class Gold:
    """Arrow tables by name, cut to the hours from that of `since` on and before `until`, and to some queues.

    `workers` and `tenants` know no queues and are never cut to them. `backlog` begins with the levels at
    `since`: each queue's last row before it.

    `before` is what a report compares with: COMPARED of as much time before, if the lake knows all of it.
    `asked` is when it should have begun, where hours made it begin earlier.
    """

    tables: dict[str, pa.Table]
    since: datetime
    until: datetime
    queues: tuple[str, ...] = ()
    before: Gold | None = None
    asked: datetime | None = None

    def __getitem__(self, name: str) -> pa.Table:
        return self.tables.get(name, pa.table({}))

    @property
    def span(self) -> timedelta:
        return self.until - self.since

    def when(self, moment: datetime) -> str:
        """For sentences: the time of day, and the date where there is more than one."""
        last = self.until - timedelta(microseconds=1)
        shown = "%H:%M" if self.since.date() == last.date() else "%b %d %H:%M"
        return f"{moment.astimezone(UTC):{shown}}"

    @property
    def of_queues(self) -> str:
        """For sentences on what knows no queues."""
        return " (of all queues)" if self.queues else ""


def read(
    lake: str | Path,
    *,
    since: datetime | timedelta | None = None,
    queues: Sequence[str] = (),
) -> Gold:
    """The gold tables from that hour on, or of so long before the last event; by default, of a day.

    They begin with the first event at the earliest: of the time before it the lake knows nothing. Raises
    NoGold.
    """
    folder = Path(lake) / "gold"
    opened = {name: _open(folder / name) for name in TABLES}
    if opened["throughput"] is None:
        raise NoGold(
            f"{lake} has no gold tables; nothing was written. "
            "Make them with: headrace pipeline run --url URL --lake " + str(lake)
        )
    try:
        _check_known(opened["throughput"], queues)
        first, until = _ends(opened["throughput"])
        asked = _asked(until, since) if first < until else until
        begin = max(_begin(until, asked, since), first) if first < until else until
        hour = begin.replace(minute=0)
        tables = {name: _cut(table, hour, until, queues) for name, table in opened.items()}
        if (backlog := opened["backlog"]) is not None:
            tables["backlog"] = pa.concat_tables(
                [_levels_before(backlog, hour, queues), tables["backlog"]]
            )
        before = _before(opened, first, begin, until, queues)
    except (OSError, pa.ArrowInvalid) as error:
        raise LakeDamaged(
            f"a file of the lake at {lake} cannot be read ({_first_line(error)}); nothing was written. "
            f"Compute its tables anew with: headrace pipeline run --url URL --lake {lake} --full"
        ) from error
    shown = asked if begin < asked else None
    return Gold(tables, begin, until, tuple(queues), before, shown)


def _before(
    opened: dict[str, DeltaTable | None],
    first: datetime,
    until: datetime,
    end: datetime,
    queues: Sequence[str],
) -> Gold | None:
    """As much time before a report that goes from `until` to `end`: by the minute, or in whole hours."""
    since = until - (end - until)
    if not first <= since < until:
        return None
    hour = since.replace(minute=0)
    tables = {name: _cut(opened[name], hour, until, queues) for name in COMPARED}
    minutes = tables["throughput"]
    within = (pc.field("minute") >= _scalar(since)) & (pc.field("minute") < _scalar(until))
    return Gold(tables | {"throughput": minutes.filter(within)}, since, until, tuple(queues))


def _check_known(throughput: DeltaTable, queues: Sequence[str]) -> None:
    """Raise if a queue is named that the lake has never seen: an empty report would look like an idle one."""
    if not queues:
        return
    named = pc.unique(throughput.to_pyarrow_dataset().to_table(["queue"])["queue"]).to_pylist()
    unknown = sorted(set(queues) - set(named))
    if unknown:
        shown = ", ".join(sorted(named)[:QUEUES_SHOWN_MAX]) or "none"
        raise NoGold(
            f"the lake knows no queue {', '.join(unknown)}; nothing was written. It knows: {shown}"
        )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _open(path: Path) -> DeltaTable | None:
    try:
        return DeltaTable(path)
    except TableNotFoundError:
        return None
    except DeltaError as error:
        raise LakeDamaged(
            f"the log of {path} cannot be read ({_first_line(error)}); nothing was written. Move that folder "
            "away and compute its tables anew with: headrace pipeline run --url URL --lake "
            f"{path.parent.parent} --full"
        ) from error


def _ends(throughput: DeltaTable) -> tuple[datetime, datetime]:
    """The first minute in which something happened, and the one after the last; the same if nothing did."""
    days = sorted(str(one["day"]) for one in throughput.partitions())
    if not days:
        return _NEVER, _NEVER
    dataset = throughput.to_pyarrow_dataset()
    ends = pa.array([days[0], days[-1]]).cast(pa.date32())
    minutes = dataset.to_table(["minute"], filter=pc.field("day").isin(ends))["minute"]
    found = pc.min_max(minutes).as_py()
    return found["min"], found["max"] + timedelta(minutes=1)


def _asked(until: datetime, since: datetime | timedelta | None) -> datetime:
    if not isinstance(since, datetime):
        return until - (since or DEFAULT_SPAN)
    if since >= until:
        raise NoGold(
            f"the lake's last event is of {until:%Y-%m-%d %H:%M} UTC, before the time asked for; "
            "nothing was written. Run the pipeline, or ask for an earlier time"
        )
    return since.astimezone(UTC)


def _begin(until: datetime, asked: datetime, since: datetime | timedelta | None) -> datetime:
    """On a whole hour: of a long time no more hours than asked for, of a short one the hour it began in."""
    hour = asked.replace(minute=0, second=0, microsecond=0)
    is_long = not isinstance(since, datetime) and until - asked >= LONG
    return hour + timedelta(hours=1) if is_long and hour < asked else hour


def _cut(
    table: DeltaTable | None, begin: datetime, until: datetime, queues: Sequence[str]
) -> pa.Table:
    if table is None:
        return pa.table({})
    dataset = table.to_pyarrow_dataset()
    wanted = (pc.field("day") >= pa.scalar(begin.date())) & (pc.field("hour") >= _scalar(begin))
    wanted &= pc.field("hour") < _scalar(until)
    return _times_in_us(dataset.to_table(filter=wanted & _of(queues, dataset.schema)))


def _levels_before(backlog: DeltaTable, begin: datetime, queues: Sequence[str]) -> pa.Table:
    """Of each queue the last row before that time; a level stays until the next row."""
    dataset = backlog.to_pyarrow_dataset()
    before = (pc.field("hour") < _scalar(begin)) & _of(queues, dataset.schema)
    earlier = _times_in_us(dataset.to_table(filter=before))
    last = earlier.group_by("queue").aggregate([("minute", "max")])
    last = last.rename_columns({"minute_max": "minute"})
    return earlier.join(last, ["queue", "minute"], join_type="inner").select(earlier.column_names)


def _of(queues: Sequence[str], schema: pa.Schema) -> Any:
    if not queues or "queue" not in schema.names:
        return pc.scalar(True)  # noqa: FBT003 - a condition that always holds
    return pc.field("queue").isin(list(queues))


def _scalar(moment: datetime) -> Any:
    return pa.scalar(moment, pa.timestamp("us", tz="UTC"))


def _times_in_us(table: pa.Table) -> pa.Table:
    """Microseconds everywhere, whatever the files have."""
    fields = [
        field.with_type(pa.timestamp("us", tz="UTC"))
        if pa.types.is_timestamp(field.type)
        else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
