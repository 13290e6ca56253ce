"""Gold: values worked out by handle, the same rows from any hour on, and checks that can fail."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.pandas.types import to_arrow_schema

from headrace import error_groups
from headrace.errors import InvalidInput
from headrace.report import build, read
from headrace.spark.lake import hours
from headrace.spark.lake.gold import GOLD, errors, objectives, of_lake, slo
from headrace.spark.lake.hours import Hours
from headrace.spark.lake.table import Sources, Table
from headrace.spark.lake.views import schema_of
from tests.report.history import Life, silver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Every day the oracle's test looks at all of gold; these say what is wrong where it objects.
pytestmark = pytest.mark.long

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
TABLES = {table.name.removeprefix("gold/"): table for table in GOLD}


def at(minute: float) -> datetime:
    """Minutes from noon."""
    return NOON + timedelta(minutes=minute)


def computed(table: Table, sources: Sources) -> pa.Table:
    """What the transform gives: the columns declared, with the types declared."""
    assert table.transform is not None
    made = table.transform(sources)
    assert made.schema.simpleString() == schema_of(table).simpleString()
    return made.toArrow()


def in_order(table: Table, rows: pa.Table) -> list[dict[str, Any]]:
    """By its key."""
    return sorted(rows.to_pylist(), key=lambda row: [str(row[name]) for name in table.key])


def rows_of(table: Table, sources: Sources) -> list[dict[str, Any]]:
    return in_order(table, computed(table, sources))


def sources_of(spark: SparkSession, lives: Sequence[Life], hours: Hours | None = None) -> Sources:
    jobs, attempts, levels = map(spark.createDataFrame, silver(lives))
    return Sources(jobs=jobs, attempts=attempts, levels=levels, hours=hours, all_jobs=jobs)


def minute_of(row: Mapping[str, Any]) -> int:
    """From noon on."""
    return int((row["minute"] - NOON) / timedelta(minutes=1))


def some(row: Mapping[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


# --- by handle -------------------------------------------------------------------------------------


Computed = Mapping[str, pa.Table]


@pytest.fixture(scope="module")
def hand_made(spark: SparkSession) -> Sources:
    """A small afternoon. Minutes from noon; jobs of two types, three workers, two tenants."""
    mail: dict[str, Any] = {"queue": "mail", "type": "send"}
    lives = [
        # Well: waited 1 minute, ran 4.
        Life("a", at(0), **mail).leased(at(1), "w1").completed(at(5)),
        # Held up by a; failed once; over two hours; 63 minutes of run, 13 of them wasted.
        Life("b", at(1), needs=["a"], **mail)
        .unblocked(at(5))
        .leased(at(7), "w1")
        .retrying(at(20), at(21), "cannot reach 'mx1' at 10.0.0.1:25 after 3 tries", "io")
        .leased(at(22), "w2")
        .completed(at(72)),
        # Held up by b, which ended after it was submitted, and not by a, which had ended before.
        Life("c", at(30), needs=["a", "b"], **mail)
        .unblocked(at(72))
        .leased(at(73), "w1")
        .completed(at(74)),
        # Lost and claimed again; still runs.
        Life("d", at(3), tenant="acme").leased(at(4), "w3").lost(at(9)).leased(at(10), "w1"),
        # Never ran: due much later; cancelled while it waited; dead of old age.
        Life("e", at(2), due=at(150)),
        Life("f", at(3)).ended(at(12), "cancelled", "cancelled", "cancelled"),
        Life("g", at(3)).ended(at(13), "dead", "timeout", "the job's lifetime is over", "lifetime"),
        # Failed for good with an error of the same group as b's.
        Life("h", at(6), tenant="acme", **mail)
        .leased(at(8), "w2")
        .ended(
            at(9), "failed", "temporary", "cannot reach 'mx2' at 10.0.0.7:25 after 12 tries", "io"
        ),
    ]
    return sources_of(spark, lives)


@pytest.fixture(scope="module")
def by_hand(hand_made: Sources) -> Computed:
    """Every table of that afternoon."""
    return {name: computed(table, hand_made) for name, table in TABLES.items()}


def told_by(name: str, tables: Computed) -> list[dict[str, Any]]:
    return in_order(TABLES[name], tables[name])


def test_throughput_counts_by_minute(by_hand: Computed) -> None:
    rows = told_by("throughput", by_hand)
    told = {
        (*some(row, "tenant", "type"), minute_of(row), column.name): row[column.name]
        for row in rows
        for column in TABLES["throughput"].columns[6:]
        if row[column.name]
    }
    assert told == {
        ("default", "send", 0, "submitted"): 1,
        ("default", "send", 1, "submitted"): 1,
        ("default", "send", 1, "started"): 1,
        ("default", "send", 5, "completed"): 1,
        ("default", "send", 7, "started"): 1,
        ("default", "send", 20, "retried"): 1,
        ("default", "send", 22, "started"): 1,
        ("default", "send", 30, "submitted"): 1,
        ("default", "send", 72, "completed"): 1,
        ("default", "send", 73, "started"): 1,
        ("default", "send", 74, "completed"): 1,
        ("acme", "work", 3, "submitted"): 1,
        ("acme", "work", 4, "started"): 1,
        ("acme", "work", 9, "lost"): 1,
        ("acme", "work", 10, "started"): 1,
        ("default", "work", 2, "submitted"): 1,
        ("default", "work", 3, "submitted"): 2,
        ("default", "work", 12, "cancelled"): 1,
        ("default", "work", 13, "dead"): 1,
        ("acme", "send", 6, "submitted"): 1,
        ("acme", "send", 8, "started"): 1,
        ("acme", "send", 9, "failed"): 1,
    }
    assert {row["hour"] for row in rows} == {at(0), at(60)}
    assert {row["day"] for row in rows} == {NOON.date()}


def test_latency_is_exact(by_hand: Computed) -> None:
    work, first, second = told_by("latency", by_hand)
    # Waits of 1, 2, 1, 2 minutes; runs of 4, 13, 1.
    assert some(first, "type", "hour", "started", "ended") == ("send", at(0), 4, 3)
    assert some(first, "wait_p50_seconds", "wait_max_seconds") == (90.0, 120.0)
    assert first["wait_sum_seconds"] == 360.0
    assert first["run_p50_seconds"] == 240.0
    assert first["run_p90_seconds"] == pytest.approx(60 * (4 + 0.8 * 9))
    assert first["run_p99_seconds"] == pytest.approx(60 * (4 + 0.98 * 9))
    assert some(first, "run_max_seconds", "run_sum_seconds") == (780.0, 1080.0)
    assert [count for count in first["run_buckets"] if count] == [1, 1, 1]
    assert len(first["run_buckets"]) == 22
    assert some(second, "hour", "started", "wait_p99_seconds") == (at(60), 1, 60.0)
    # Of the second hour: b's last attempt and c.
    assert some(second, "ended", "run_max_seconds") == (2, 3000.0)
    assert some(work, "started", "ended", "wait_max_seconds") == (2, 1, 60.0)


def test_outcomes_of_attempts_and_of_jobs(by_hand: Computed) -> None:
    told = {
        some(row, "type", "outcome", "category", "hour"): some(
            row, "attempts", "jobs", "run_seconds"
        )
        for row in told_by("outcomes", by_hand)
    }
    assert told == {
        ("send", "completed", "none", at(0)): (1, 1, 240.0),
        ("send", "completed", "none", at(60)): (2, 2, 3060.0),
        ("send", "retrying", "temporary", at(0)): (1, 0, 780.0),
        ("send", "failed", "temporary", at(0)): (1, 1, 60.0),
        ("work", "lost", "system", at(0)): (1, 0, 300.0),
        ("work", "cancelled", "cancelled", at(0)): (0, 1, 0.0),
        ("work", "dead", "timeout", at(0)): (0, 1, 0.0),
    }


def test_errors_that_mean_the_same_are_one_group(by_hand: Computed) -> None:
    told = {row["message"]: row for row in told_by("errors", by_hand)}
    group = told["cannot reach <text> at <n> after <n> tries"]
    assert some(group, "queue", "category", "code") == ("mail", "temporary", "io")
    assert some(group, "occurrences", "jobs", "fatal", "run_seconds") == (2, 2, 1, 840.0)
    assert some(group, "first_seen", "last_seen", "example_job_id") == (at(9), at(20), "b")
    # No attempt tells of a job that died while it waited; its timeline does.
    assert some(told["the job's lifetime is over"], "occurrences", "fatal") == (1, 1)
    assert some(told["the lease lapsed"], "occurrences", "fatal") == (1, 0)
    assert len(told) == 3


def test_retries_and_what_they_cost(by_hand: Computed) -> None:
    work, first, second = told_by("retries", by_hand)
    assert some(first, "attempts", "extra_attempts", "failed_attempts", "lost_attempts") == (
        4,
        1,
        2,
        0,
    )
    assert some(first, "run_seconds", "wasted_seconds", "retried_jobs") == (1080.0, 840.0, 0)
    assert some(second, "retried_jobs", "recovered_jobs", "given_up_jobs") == (1, 1, 0)
    assert some(second, "run_seconds", "wasted_seconds") == (3060.0, 0.0)
    assert some(work, "extra_attempts", "lost_attempts", "wasted_seconds") == (1, 1, 300.0)


def test_workers_are_busy_in_each_hour_of_an_attempt(by_hand: Computed) -> None:
    told = {some(row, "worker", "hour"): row for row in told_by("workers", by_hand)}
    assert set(told) == {
        ("w1", at(0)),
        ("w1", at(60)),
        ("w2", at(0)),
        ("w2", at(60)),
        ("w3", at(0)),
    }
    # b's second attempt runs from 12:22 to 13:12: 38 minutes, then 12.
    assert told["w2", at(0)]["busy_seconds"] == 60 * (38 + 1)
    assert told["w2", at(60)]["busy_seconds"] == 60 * 12
    assert told["w2", at(60)]["utilisation"] == pytest.approx(0.2)
    assert some(told["w2", at(0)], "attempts", "completed", "failures", "losses") == (2, 0, 1, 0)
    assert some(told["w2", at(60)], "attempts", "completed", "failures", "losses") == (0, 1, 0, 0)
    assert some(told["w3", at(0)], "losses", "busy_seconds") == (1, 300.0)


def test_tenants_share_the_hour(by_hand: Computed) -> None:
    told = {some(row, "tenant", "hour"): row for row in told_by("tenants", by_hand)}
    assert told["acme", at(0)]["attempts_share"] == pytest.approx(3 / 6)
    assert told["acme", at(0)]["run_share"] == pytest.approx(360 / 1380)
    assert some(told["default", at(60)], "attempts_share", "run_share") == (1.0, 1.0)


def test_objectives_are_those_of_the_queue_and_burn_by_what_misses_them(
    hand_made: Sources,
) -> None:
    promised = objectives.Objective(
        queue="mail", start_seconds=60, start_ratio=0.9, finish_seconds=600, success_ratio=0.75
    )
    work, first, second = rows_of(slo.table(objectives.ordered([promised])), hand_made)
    assert some(first, "started", "started_in_time", "completed", "ended") == (3, 1, 1, 2)
    assert first["start_burn"] == pytest.approx((2 / 3) / 0.1)
    assert first["success_burn"] == pytest.approx((1 / 2) / 0.25)
    # b was due at 12:01 and ended at 13:12; c was due at 12:30 and ended at 13:14.
    assert some(second, "completed", "completed_in_time") == (2, 0)
    assert second["finish_burn"] == pytest.approx(100)
    assert some(work, "start_seconds", "start_ratio", "ended") == (60.0, 0.99, 1)


def test_backlog_is_the_level_at_the_end_of_each_minute(by_hand: Computed) -> None:
    told = {
        (row["queue"], minute_of(row)): some(row, "waiting", "ready", "running")
        for row in told_by("backlog", by_hand)
    }
    assert told["mail", 0] == (1, 1, 0)
    assert told["mail", 1] == (1, 0, 1)  # a runs, b is blocked
    assert told["mail", 5] == (1, 1, 0)
    assert told["mail", 20] == (1, 0, 0)  # b failed and is due a minute later
    assert told["mail", 21] == (1, 1, 0)
    assert told["mail", 74] == (0, 0, 0)
    assert told["default", 2] == (1, 0, 0)
    assert told["default", 3] == (4, 3, 0)
    assert told["default", 9] == (4, 3, 0)  # d was lost
    assert told["default", 13] == (1, 0, 1)
    assert told["default", 150] == (1, 1, 1)  # e becomes due


def test_a_critical_path_follows_what_ended_last(by_hand: Computed) -> None:
    told = {row["job_id"]: row for row in told_by("paths", by_hand)}
    assert set(told) == {"b", "c"}
    assert [step["job_id"] for step in told["b"]["steps"]] == ["a", "b"]
    assert [step["job_id"] for step in told["c"]["steps"]] == ["a", "b", "c"]
    assert some(told["c"], "length", "elapsed_seconds") == (3, 74 * 60.0)
    assert some(told["c"], "wait_seconds", "run_seconds") == (
        60.0 * (1 + 3 + 1),
        60.0 * (4 + 63 + 1),
    )
    assert told["c"]["hour"] == at(60)


def test_a_critical_path_through_a_batch_in_any_order_and_an_id_used_again(
    spark: SparkSession,
) -> None:
    lives = [
        # Submitted together with what it needs, and numbered before that.
        Life("last", at(0), needs=["first"]).unblocked(at(5)).leased(at(6), "w1").completed(at(9)),
        Life("first", at(0)).leased(at(1), "w1").completed(at(5)),
        # The same id in its next life: nobody waited for this one.
        Life("first", at(6)).leased(at(7), "w2").completed(at(8)),
    ]
    (path,) = rows_of(TABLES["paths"], sources_of(spark, lives))
    assert [step["job_id"] for step in path["steps"]] == ["first", "last"]
    assert some(path, "elapsed_seconds", "run_seconds") == (9 * 60.0, 7 * 60.0)


# --- for all tables ------------------------------------------------------------------------------


def any_lives(seed: int, count: int) -> list[Life]:
    """Jobs of every fate over five hours, some of them held up by others."""
    rng = random.Random(seed)
    lives: list[Life] = []
    for number in range(count):
        begin = at(rng.uniform(0, 270))
        needs = [one.job_id for one in rng.sample(lives[-20:], k=min(len(lives), 2))]
        life = Life(
            f"j{number}",
            begin,
            tenant=rng.choice(["acme", "bolt"]),
            queue=rng.choice(["mail", "web"]),
            type=rng.choice(["send", "fetch"]),
            due=begin + timedelta(minutes=rng.choice([0, 0, 0, 40])),
            needs=needs if rng.random() < 0.25 else (),
        )
        if life.needs:
            ended = [one.at for one in lives if one.job_id in life.needs]
            life.unblocked(max([begin, *ended]))
        live(life, rng)
        lives.append(life)
    return lives


def live(life: Life, rng: random.Random) -> None:
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        life.leased(
            life.ready_at + timedelta(seconds=rng.expovariate(1 / 90)), f"w{rng.randrange(3)}"
        )
        if rng.random() < 0.05:
            return
        then = life.at + timedelta(seconds=rng.expovariate(1 / rng.choice([30, 300, 4000])))
        message = f"cannot reach 'host{rng.randrange(9)}' after {rng.randrange(9)} tries"
        match rng.choice("cccccrrrlsxfd"):
            case "c":
                life.completed(then)
                return
            case "r":
                life.retrying(then, then + timedelta(minutes=rng.uniform(0, 5)), message)
            case "l":
                life.lost(then)
            case "s":
                life.snoozed(then, then + timedelta(minutes=20))
            case "x":
                life.released(then)
            case "f":
                life.ended(then, "failed", "permanent", message, "E42")
                return
            case _:
                life.ended(then, "dead", "temporary", message)
                return
    if rng.random() < 0.3:
        then = life.at + timedelta(minutes=rng.uniform(0, 60))
        life.ended(then, *rng.choice([("cancelled", "cancelled"), ("dead", "timeout")]), "no more")


@pytest.fixture(scope="module")
def at_random(spark: SparkSession) -> Iterator[Sources]:
    sources = sources_of(spark, any_lives(seed=5, count=250))
    jobs, attempts = sources.jobs.cache(), sources.attempts.cache()
    yield replace(sources, jobs=jobs, attempts=attempts, all_jobs=jobs)
    jobs.unpersist()
    attempts.unpersist()


@pytest.fixture(scope="module")
def whole(at_random: Sources) -> dict[str, list[dict[str, Any]]]:
    return {name: rows_of(table, at_random) for name, table in TABLES.items()}


FROM_THREE_ON = hours.union(hours.since(pa.chunked_array([[at(180)]])))
SOME_HOURS = hours.union(hours.hours_of(pa.chunked_array([[at(61), at(200), at(260)]])))


@pytest.mark.parametrize("asked", [FROM_THREE_ON, SOME_HOURS], ids=["from on", "some"])
@pytest.mark.parametrize("name", TABLES)
def test_of_any_hours_the_rows_are_the_same(
    name: str, asked: Hours, at_random: Sources, whole: dict[str, list[dict[str, Any]]]
) -> None:
    some_rows = rows_of(TABLES[name], replace(at_random, hours=asked))
    expected = [
        row
        for row in whole[name]
        if any(
            since <= row["hour"] and (until is None or row["hour"] < until)
            for since, until in asked.times()
        )
    ]
    assert some_rows == approximately(expected)
    assert 0 < len(some_rows) < len(whole[name])
    assert all(row["hour"].minute == 0 for row in some_rows)
    assert all(row["day"] == row["hour"].date() for row in some_rows)


def approximately(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sums of fractions may differ in their last digit by the order of rows."""
    return [
        {
            name: pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
            for name, value in row.items()
        }
        for row in rows
    ]


@pytest.mark.parametrize("name", TABLES)
def test_nothing_gives_nothing(name: str, spark: SparkSession) -> None:
    assert rows_of(TABLES[name], sources_of(spark, [], FROM_THREE_ON)) == []


# --- checks --------------------------------------------------------------------------------------

Spoil = Callable[[list[dict[str, Any]]], None]


def _add(column: str, by: float) -> Spoil:
    def spoil(rows: list[dict[str, Any]]) -> None:
        rows[0][column] += by

    return spoil


def _drop_last(rows: list[dict[str, Any]]) -> None:
    rows.pop()


SPOILS: dict[str, Spoil] = {
    "throughput counts every job of silver once": _add("completed", 1),
    "throughput counts every attempt of silver once": _add("started", 1),
    "latency sums every wait and run of silver": _add("run_sum_seconds", 1),
    "percentiles rise up to the longest": _add("wait_p95_seconds", 1e6),
    "buckets hold every attempt of the row": _add("started", 1),
    "outcomes count every ended attempt and job of silver": _drop_last,
    "errors count every failed and lost attempt of silver": _drop_last,
    "an error group hits no more jobs than it occurs, and its times are those of its hour": _add(
        "jobs", 1000
    ),
    "retries count every attempt beyond the first, and every failure and loss of silver": _add(
        "extra_attempts", 1
    ),
    "every retried job recovered, was given up or was stopped": _add("recovered_jobs", 1),
    "workers started every attempt of silver, and were busy as long as attempts ran": _add(
        "busy_seconds", 60
    ),
    "no worker was busy for less than no time": _add("busy_seconds", -1e6),
    "shares of an hour sum to 1": _add("run_share", 0.01),
    "tenants started every attempt of silver": _add("attempts", 1),
    "slo judges every first attempt and every ended job of silver": _add("ended", 1),
    "no more is in time than there is, and burn rates are never negative": _add(
        "started_in_time", 1000
    ),
    "levels are never negative": _add("ready", -1000),
    "the last levels are what silver holds": _drop_last,
    "a path ends with its own job, and has as many steps as it says": _add("length", 1),
    "every path belongs to an ended job of silver that has dependencies": _add("born_seq", 100_000),
}


def offended(
    spark: SparkSession,
    whole: dict[str, list[dict[str, Any]]],
    spoils: Mapping[str, Spoil] | None = None,
) -> set[str]:
    """The names of the checks that find fault, each with its table spoilt in its own way; in one query."""
    asked = []
    for number, (table, check) in enumerate((t, c) for t in GOLD for c in t.checks):
        rows = [dict(row) for row in whole[table.name.removeprefix("gold/")]]
        if spoils is not None:
            spoils[check.name](rows)
        view = f"{table.view}_{number}"
        schema = to_arrow_schema(schema_of(table), timezone="UTC")
        spark.createDataFrame(pa.Table.from_pylist(rows, schema)).createOrReplaceTempView(view)
        sql = check.sql.replace(table.view, view)
        asked.append(f"SELECT {number} AS number FROM ({sql})")
    names = [check.name for table in GOLD for check in table.checks]
    found = spark.sql(" UNION ALL ".join(asked)).collect()
    return {names[row["number"]] for row in found}


def test_every_check_passes_on_what_is_right_and_fails_on_what_is_not(
    spark: SparkSession, at_random: Sources, whole: dict[str, list[dict[str, Any]]]
) -> None:
    at_random.jobs.createOrReplaceTempView("silver_jobs")
    at_random.attempts.createOrReplaceTempView("silver_attempts")
    assert offended(spark, whole) == set()
    assert offended(spark, whole, SPOILS) == set(SPOILS)


def test_the_report_reads_what_the_transforms_give(by_hand: Computed, tmp_path: Path) -> None:
    for table in GOLD:
        rows = by_hand[table.name.removeprefix("gold/")]
        write_deltalake(tmp_path / table.name, rows, partition_by=list(table.partition_by))
    report = build(read(tmp_path))
    assert [section.key for section in report.sections if section.is_empty] == []
    assert [figure.value for figure in report.figures][:2] == ["6", "60 %"]


# --- error groups and objectives -----------------------------------------------------------------


def test_variable_parts_collapse(spark: SparkSession) -> None:
    messages = {
        "job 7f3e4c1a-9d2b-4e6f-8a1b-2c3d4e5f6a7b is gone": "job <uuid> is gone",
        "at 2026-11-16T12:00:01.5Z and 2026-11-16": "at <time> and <time>",
        "it can't read 'a b' or \"c\" or `d`": "it can't read <text> or <text> or <text>",
        "object 0x7f00dead, commit deadbeef42": "object <hex>, commit <hex>",
        "defaced decade": "defaced decade",
        "took 1.5 s, 3 of 1,000\n  at 10.0.0.1:80": "took <n> s, <n> of <n> at <n>",
        "x" * 400: "x" * 300,
    }
    told = spark.createDataFrame([(one,) for one in messages], "message string").selectExpr(
        "message", f"{errors.collapsed('message')} AS collapsed"
    )
    assert {row["message"]: row["collapsed"] for row in told.collect()} == messages
    assert {message: error_groups.collapsed(message) for message in messages} == messages


def test_objectives_are_read_from_the_lake(tmp_path: Path) -> None:
    assert objectives.read(tmp_path) == objectives.DEFAULT
    file = tmp_path / objectives.FILE
    file.parent.mkdir()
    file.write_text('[{"start_seconds": 5}, {"queue": "mail", "type": "send"}, {"queue": "mail"}]')
    ranked = [(one.queue, one.type) for one in objectives.read(tmp_path)]
    assert ranked == [("mail", "send"), ("mail", None), (None, None), (None, None)]
    assert objectives.read(tmp_path)[2].start_seconds == 5
    assert [table.name for table in of_lake(tmp_path)] == [table.name for table in GOLD]


@pytest.mark.parametrize("text", ['{"queue": 1}', '[{"success_ratio": 1}]', '[{"queu": "x"}]', "["])
def test_objectives_that_make_no_sense_are_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / objectives.FILE
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(InvalidInput, match="no table was changed"):
        objectives.read(tmp_path)
