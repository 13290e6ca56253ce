"""Making histories in real stores and reading what the pipeline made of them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
from deltalake import DeltaTable

from headrace.connect import open_store
from headrace.model import Event
from headrace.spark import folding, schemas
from headrace.spark.lake.bronze import bronze_of
from headrace.spark.lake.gold import GOLD, objectives
from headrace.spark.lake.intake import Intake, Taken
from headrace.spark.lake.run import Summary, opened
from headrace.spark.lake.silver import ATTEMPTS_TABLE, JOBS_TABLE, LEVELS_TABLE, silver_of
from headrace.spark.lake.storage import Storage, storage_of
from headrace.spark.lake.table import Table
from headrace.spark.lake.tasks import LocalTasks
from tests.spark import gold_oracle, oracle
from tests.spark.wild import PAUSES_SECONDS, all_events, table_of, wild_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def happen(
    url: str, seed: int, steps: int, pauses_seconds: Sequence[float] = PAUSES_SECONDS
) -> list[Event]:
    """Let things happen in the store, a day later per seed; all events that its log holds then."""

    async def made() -> list[Event]:
        store = await open_store(url, migrate=True)
        try:
            wild = await wild_on(store, seed)
            wild.clock.advance(86_400 * seed)
            wild.made = 1000 * seed
            wild.pauses_seconds = pauses_seconds
            await wild.steps(steps)
            return await all_events(store)
        finally:
            await store.close()

    return asyncio.run(made())


def plain_run(
    url: str,
    lake: Path,
    spark: SparkSession,
    *,
    tables: Sequence[Table] = (),
    check: bool = False,
    batch_events: int = 10_000,
) -> Summary:
    """A run as `pipeline.run` does it, with these gold tables only."""
    with opened(url, lake, spark, tables=tables) as work:
        work.start()
        work.take_in(batch_events)
        work.refresh(everything=False)
        return work.finish(work.check(everything=False) if check else 0)


def intake(lake: Path | Storage) -> Intake:
    """Without Spark: tasks one after the other, in this process."""
    made = Intake(lake if isinstance(lake, Storage) else storage_of(lake), LocalTasks())
    made.prepare(name="a lake", description="of a test")
    return made


def take(lake: Path | Storage, events: Sequence[Event], parts: int = 1) -> Taken:
    """Take these events in as one batch, read in so many parts."""
    made = intake(lake)
    size = -(-len(events) // parts) or 1
    told = [table_of(events[start : start + size]) for start in range(0, len(events), size)]
    taken = made.append(told, pa.Table.to_batches)
    made.catch_up()
    return taken


def assert_exact(lake: Path | Storage, events: Sequence[Event]) -> None:
    """Bronze holds these events, and silver what plain Python makes of them: every column of every row."""
    storage = lake if isinstance(lake, Storage) else storage_of(lake)
    bronze = bronze_of(storage).snapshot().read()
    told = table_of(sorted(events, key=lambda event: event.seq))
    assert bronze.select(schemas.EVENTS.names).sort_by("seq").equals(told)
    jobs = silver_of(storage, JOBS_TABLE).snapshot().read()
    attempts = silver_of(storage, ATTEMPTS_TABLE).snapshot().read()
    assert oracle.rows_of(jobs.select(folding.JOBS.names), "last_seq") == oracle.jobs(events)
    assert oracle.rows_of(attempts.select(schemas.ATTEMPTS.names), "leased_seq") == oracle.attempts(
        events
    )
    for row in jobs.select([*_PLACED, "created_on", "finalized_on", "ended"]).to_pylist():
        assert row["created_on"] == row["created_at"].date()
        ended = row["finalized_at"]
        assert row["finalized_on"] == (None if ended is None else ended.date())
        assert row["ended"] == (ended is not None)
    for row in attempts.select(["leased_at", "leased_on", "ended_at", "ended_on"]).to_pylist():
        assert row["leased_on"] == row["leased_at"].date()
        assert row["ended_on"] == (None if row["ended_at"] is None else row["ended_at"].date())
    levels = silver_of(storage, LEVELS_TABLE).snapshot().read(folding.LEVELS.names)
    order = [("queue", "ascending"), ("minute", "ascending")]
    wanted = folding.fold(told).levels.sort_by(order)
    assert folding.levels_summed(levels).sort_by(order).equals(wanted)


_PLACED = ("created_at", "finalized_at")


def assert_gold_exact(lake: Path | Storage, events: Sequence[Event]) -> None:
    """Every gold table holds what plain Python makes of these events: every column of every row."""
    wanted = gold_oracle.tables(events, objectives.read(lake))
    assert set(wanted) == {table.name for table in GOLD}
    for table in GOLD:
        assert differences(gold_rows(lake, table), wanted[table.name], table.key) == [], table.name


def gold_rows(lake: Path | Storage, table: Table) -> list[dict[str, Any]]:
    storage = lake if isinstance(lake, Storage) else storage_of(lake)
    return rows(storage.within(table.name).delta().to_pyarrow_table())


def differences(
    told: Sequence[dict[str, Any]], wanted: Sequence[dict[str, Any]], key: Sequence[str]
) -> list[str]:
    """What is wrong with a table's rows, in words; floats may differ by the order of adding."""

    def by_key(found: Sequence[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
        return {tuple(row[name] for name in key): row for row in found}

    has, needs = by_key(told), by_key(wanted)
    assert len(needs) == len(wanted), "the key tells rows apart"
    wrong = [f"{len(told) - len(has)} rows told twice"] if len(has) < len(told) else []
    wrong += [f"{row} is missing" for place, row in needs.items() if place not in has]
    wrong += [f"{row} is too much" for place, row in has.items() if place not in needs]
    for place in has.keys() & needs.keys():
        one, other = has[place], needs[place]
        wrong += [
            f"{place}: {name} is {one.get(name)!r}, not {other.get(name)!r}"
            for name in one.keys() | other.keys()
            if name not in one or name not in other or not _same(one[name], other[name])
        ]
    return sorted(wrong)


def _same(one: Any, other: Any) -> bool:
    match one, other:
        case float(), float():
            return math.isclose(one, other, rel_tol=1e-9)
        case list(), list():
            return len(one) == len(other) and all(map(_same, one, other))
        case dict(), dict():
            return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
        case _:
            return type(one) is type(other) and bool(one == other)


def events_in(bronze: pa.Table) -> list[Event]:
    """The events that a table of them tells of."""
    return [
        msgspec.convert(
            {**row, "detail_json": None if row["detail"] is None else row["detail"].encode()},
            Event,
        )
        for row in bronze.to_pylist()
    ]


def rows(table: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def assert_filters_find_all(table: Path, values_max: int = 6) -> None:
    """Values of every column, asked for by readers that pass files over, against a full scan."""
    delta = DeltaTable(str(table))
    dataset = delta.to_pyarrow_dataset()
    whole = _whole(delta)
    lazy = pl.scan_delta(str(table))
    for field in dataset.schema:
        if pa.types.is_nested(field.type):
            continue
        held = whole[field.name].to_pylist()
        for value in sorted(set(held) - {None}, key=str)[:values_max]:
            wanted = held.count(value)
            literal = pa.scalar(value, field.type)
            assert dataset.count_rows(filter=pc.field(field.name) == literal) == wanted, field.name
            asked = f'SELECT count(*) FROM dataset WHERE "{field.name}" = ?'
            assert duckdb.execute(asked, [value]).fetchone() == (wanted,), field.name
            found = delta.to_pandas(columns=[field.name], filters=[(field.name, "=", value)])
            assert len(found) == wanted, field.name
            assert lazy.filter(pl.col(field.name) == value).collect().height == wanted, field.name
        assert dataset.count_rows(filter=pc.field(field.name).is_null()) == held.count(None)


def _whole(delta: DeltaTable) -> pa.Table:
    """Every row of every file, whatever the log says of the files."""
    files = delta.file_uris()
    names = delta.metadata().partition_columns
    schema = pa.schema(delta.schema().to_arrow())
    parts = pds.partitioning(pa.schema([schema.field(name) for name in names]), flavor="hive")
    return pds.dataset(files, schema=schema, format="parquet", partitioning=parts).to_table()
