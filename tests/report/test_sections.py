"""What a report says of a small afternoon, worked out by hand."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.report import NoGold, Report, build, read, wording
from headrace.report.section import Section
from tests.report.tables import NOON, at, write


def section(report: Report, key: str) -> Section:
    (found,) = [one for one in report.sections if one.key == key]
    return found


def test_a_day_before_the_last_event_is_read_unless_asked_otherwise(
    lake: Path, tmp_path: Path
) -> None:
    days = [{"minute": at(minutes), "submitted": 1} for minutes in (-3 * 1440, 61)]
    write(tmp_path, {"throughput": days})
    gold = read(tmp_path)
    assert (gold.since, gold.until) == (NOON - timedelta(hours=22), at(62))
    assert gold.span <= timedelta(days=1)
    assert read(lake, since=at(5)).since == at(0)


def test_a_report_begins_with_the_first_event(tmp_path: Path) -> None:
    """Rates over a time of which the lake knows nothing would be wrong."""
    minute = {"minute": at(17), "submitted": 380, "completed": 380}
    busy = [{"hour": at(0), "worker": "w", "attempts": 380, "busy_seconds": 120.0}]
    write(tmp_path, {"throughput": [minute], "workers": busy})
    for since in (None, timedelta(days=7), at(-600)):
        gold = read(tmp_path, since=since)
        assert (gold.since, gold.until) == (at(17), at(18))
        report = build(gold)
        assert "380 jobs came in, 380 a minute" in section(report, "traffic").says
        workers = section(report, "workers")
        assert workers.rows[0][-1] == pytest.approx(2.0)
        assert workers.data is not None
        assert workers.data["at_once"].to_pylist() == [pytest.approx(2.0)]


def test_only_rows_of_the_time_and_queue_asked_for(lake: Path) -> None:
    later = read(lake, since=at(60))
    assert later["throughput"]["queue"].to_pylist() == ["web"]
    mail = read(lake, queues=["mail"])
    assert set(mail["latency"]["queue"].to_pylist()) == {"mail"}
    assert mail["workers"].num_rows == 2  # workers know no queues
    assert "of all queues" in section(build(mail), "workers").says
    assert "of all queues" not in section(build(read(lake)), "workers").says


def test_what_is_due_only_later_is_no_backlog(afternoon: Report) -> None:
    rows = {row[0]: row for row in section(afternoon, "backlog").rows}
    assert rows["mail"] == ("mail", 2, at(0), 0, 0, 1)
    assert "mail: 2 jobs due and unclaimed at" in section(afternoon, "backlog").says


def test_a_level_lasts_until_it_changes(lake: Path, tmp_path: Path) -> None:
    """Also over the beginning of the report."""
    levels = [
        {"minute": at(-300), "ready": 8, "waiting": 8},
        {"minute": at(-200), "ready": 7, "waiting": 9, "running": 1},
    ]
    events = [{"minute": at(-300), "submitted": 9}, {"minute": at(30), "submitted": 1}]
    write(tmp_path, {"throughput": events, "backlog": levels})
    backlog = section(build(read(tmp_path, since=at(0))), "backlog")
    assert backlog.rows == [("mail", 7, at(0), 7, 1, 9)]
    assert backlog.data is not None
    assert set(backlog.data["ready"].to_pylist()) == {7}


def test_a_path_without_gold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoGold, match="headrace pipeline run"):
        read(tmp_path)


def test_a_time_after_the_last_event_is_refused(lake: Path) -> None:
    with pytest.raises(NoGold, match="2026-11-16 13:02 UTC"):
        read(lake, since=at(600))


def test_tables_that_an_older_lake_lacks_are_empty_sections(tmp_path: Path) -> None:
    write(tmp_path, {"throughput": [{"minute": at(0), "submitted": 1}]})
    shutil.rmtree(tmp_path / "gold" / "paths")
    shutil.rmtree(tmp_path / "gold" / "backlog")
    report = build(read(tmp_path))
    assert "paths" not in {one.key for one in report.sections}
    assert section(report, "backlog").is_empty
    assert not section(report, "traffic").is_empty


def test_nothing_at_all_still_gives_a_report(empty_lake: Path) -> None:
    report = build(read(empty_lake))
    assert all(one.is_empty and one.says for one in report.sections)
    assert [one.value for one in report.figures] == ["0", "–", "–", "0 ms", "none"]
    assert report.advice == []


def test_a_lake_without_events_is_of_no_time(empty_lake: Path) -> None:
    for since in (None, timedelta(days=7), at(0)):
        gold = read(empty_lake, since=since)
        assert gold.since == gold.until
        assert wording.span(gold.since, gold.until) == "no events yet"


def test_the_head(afternoon: Report) -> None:
    told = {one.name: (one.value, one.detail, one.is_bad) for one in afternoon.figures}
    assert told == {
        "jobs ended": ("13", "15 submitted", False),
        "success": ("92.3 %", "1 failed or dead", True),
        "p95 wait": ("1 m 1 s", "at most 1 m 30 s, longest 1 m 30 s; send promised 1 m", True),
        "retries' cost": ("9 s", "13 % of run time", False),
        "worst error": ("3×", "send: cannot reach <text> & <script>", True),
    }


def test_traffic_by_queue_and_over_time(afternoon: Report) -> None:
    traffic = section(afternoon, "traffic")
    assert traffic.rows == [("web", 9, 0, 9, 0, 0, 0), ("mail", 6, 7, 3, 0, 1, 0)]
    assert "15 jobs came in" in traffic.says
    assert traffic.data is not None
    drawn = [row for row in traffic.data.to_pylist() if row["jobs"]]
    assert sum(row["jobs"] for row in drawn if row["series"] == "submitted") == 15
    assert {row["at"] for row in drawn} == {at(0), at(1), at(61)}


def test_latency_of_one_hour_is_exact_and_of_several_about_right(afternoon: Report) -> None:
    latency = section(afternoon, "latency")
    mail = latency.rows[0]
    assert mail == ("send", 7, 0.4, 80.0, 90.0, 3.0, 30.0)
    assert "send in mail waited longest" in latency.says


def test_objectives_tell_the_worst_breach(afternoon: Report) -> None:
    objectives = section(afternoon, "objectives")
    assert objectives.rows[0][0] == "send"
    assert objectives.rows[0][4] == pytest.approx(25.0)
    assert objectives.says.startswith("1 of 2 types broke an objective. send burns")
    assert "(75 % succeeded, 99 % should)" in objectives.says
    assert objectives.rows[1][-1] is None


def test_outcomes_and_errors(afternoon: Report) -> None:
    outcomes = section(afternoon, "outcomes")
    assert outcomes.rows == [("send", 4, 0.75, 0, 1, 0), ("fetch", 9, 1.0, 0, 0, 0)]
    assert "overall is temporary (1 job)" in outcomes.says
    errors = section(afternoon, "errors")
    assert [row[0] for row in errors.rows] == [3, 1]
    assert "4 errors in 2 groups; the largest makes up 75 %" in errors.says
    assert "1 job ended by it" in errors.says


def test_retries_workers_tenants_paths(afternoon: Report) -> None:
    assert section(afternoon, "retries").rows == [("send", 2, 3, 0, 9.0, pytest.approx(0.15), 0.5)]
    workers = section(afternoon, "workers")
    assert [row[0] for row in workers.rows] == ["w1", "w2"]
    tenants = section(afternoon, "tenants")
    assert tenants.rows[0][0] == "acme"
    assert tenants.rows[0][4] == pytest.approx(60 / 69)
    assert "acme took 87 % of the run time" in tenants.says
    paths = section(afternoon, "paths")
    assert paths.rows == [("send", 1, 2, 60.0, 60.0, 0.75, pytest.approx(1 / 6))]
    assert "fetch takes 74.5 %" in paths.says


def test_types_of_one_name_in_two_queues_are_told_apart(tmp_path: Path) -> None:
    rows = [
        {"hour": at(0), "queue": queue, "type": "send", "outcome": "dead", "jobs": jobs}
        for queue, jobs in (("a", 1), ("b", 2))
    ]
    write(tmp_path, {"throughput": [{"minute": at(0)}], "outcomes": rows})
    outcomes = section(build(read(tmp_path)), "outcomes")
    assert [row[0] for row in outcomes.rows] == ["b/send", "a/send"]
    assert outcomes.data is not None
    assert set(outcomes.data["type"].to_pylist()) == {"a/send", "b/send"}


def test_every_way_to_end_counts_as_an_end(tmp_path: Path) -> None:
    ways = ("completed", "failed", "dead", "cancelled", "abandoned")
    minute = {"minute": at(0), "submitted": 7, **dict.fromkeys(ways, 1)}
    ended = [{"hour": at(0), "outcome": one, "jobs": 1} for one in ways]
    write(tmp_path, {"throughput": [minute], "outcomes": ended})
    report = build(read(tmp_path))
    assert report.figures[0].value == "5"
    assert "and 5 came to an end" in section(report, "traffic").says


def test_the_longest_line_may_stem_from_before_the_report(tmp_path: Path) -> None:
    """A level lasts until it changes: what the chart shows, the sentence and the table say."""
    levels = [
        {"minute": at(-30), "ready": 1000, "waiting": 1000},
        {"minute": at(45), "ready": 10, "waiting": 10},
    ]
    events = [{"minute": at(-30), "submitted": 1000}, {"minute": at(50), "submitted": 1}]
    write(tmp_path, {"throughput": events, "backlog": levels})
    backlog = section(build(read(tmp_path, since=at(0))), "backlog")
    assert backlog.data is not None
    assert max(backlog.data["ready"].to_pylist()) == 1000
    assert backlog.rows == [("mail", 1000, at(0), 10, 0, 10)]
    assert "1,000 jobs due and unclaimed at 12:00" in backlog.says
