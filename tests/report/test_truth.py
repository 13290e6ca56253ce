"""Figures and charts that once said what was not so."""

from __future__ import annotations

import html
import re
import shlex
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from headrace import JobManager, JobSpec, PermanentError
from headrace.cli import main
from headrace.error_groups import collapsed
from headrace.report import Report, build, read
from headrace.report.charts import DRAWN, NARROW, WIDE
from headrace.report.page import page, svg
from headrace.report.section import Figure, Section
from headrace.report.sections import errors
from tests.cli.shell import Shell
from tests.report.tables import Rows, at, buckets, write

LATE = {"started": 100, "started_in_time": 1, "start_burn": 99.0}
WAITED = {
    "started": 100,
    "wait_p50_seconds": 260.0,
    "wait_p95_seconds": 284.0,
    "wait_max_seconds": 306.0,
    "wait_buckets": buckets(b17=100),
}
HOURS = [{"minute": at(60 * hour), "submitted": 1 + hour} for hour in range(6)]


def made(lake: Path, tables: dict[str, Rows], **asked: Any) -> Report:
    minutes: Rows = tables.get("throughput", [{"minute": at(0), "submitted": 1}])
    return build(read(write(lake, {**tables, "throughput": minutes}), **asked))


def section(report: Report, key: str) -> Section:
    (found,) = [one for one in report.sections if one.key == key]
    return found


def figure(report: Report, name: str) -> Figure:
    (found,) = [one for one in report.figures if one.name == name]
    return found


# --- figures -------------------------------------------------------------------------------------


def test_the_wait_is_marked_where_a_promise_of_starts_is_broken(tmp_path: Path) -> None:
    report = made(tmp_path, {"slo": [LATE], "latency": [WAITED]})
    wait = figure(report, "p95 wait")
    assert wait.is_bad
    assert (wait.value, wait.detail) == ("4 m 44 s", "longest 5 m 6 s; send promised 1 m")
    assert "see Objectives" in report.verdict
    assert "Nothing in these figures asks for a change." not in page(report)


def test_the_wait_is_not_marked_where_it_was_kept(tmp_path: Path) -> None:
    kept = LATE | {"started_in_time": 100, "start_burn": 0.0}
    report = made(tmp_path, {"slo": [kept], "latency": [WAITED]})
    assert not figure(report, "p95 wait").is_bad
    assert report.verdict == "Nothing in these figures asks for a change."


def test_half_and_most_of_two_types_are_not_the_longest_of_all(tmp_path: Path) -> None:
    """Both once were 5 m 6 s: the bucket from 200 to 500 s, cut at the longest."""
    other = WAITED | {"type": "other", "started": 200, "wait_buckets": buckets(b17=200)}
    says = section(made(tmp_path, {"latency": [WAITED, other]}), "latency").says
    assert "Half of the attempts started within about 4 m 20 s (at most 4 m 44 s)" in says
    assert "95 % within about 4 m 44 s (at most 5 m 6 s)" in says


def test_rates_of_traffic_have_separators_and_no_decimals(tmp_path: Path) -> None:
    burst = [{"minute": at(0), "submitted": 200_000}, {"minute": at(13), "submitted": 5436}]
    says = section(made(tmp_path, {"throughput": burst}), "traffic").says
    assert "205,436 jobs came in, 14,674 a minute" in says


def test_what_failed_for_good_at_once_is_no_cost_of_retries(tmp_path: Path) -> None:
    report = made(
        tmp_path,
        {
            "retries": [
                {"attempts": 103, "extra_attempts": 3, "run_seconds": 100.0, "wasted_seconds": 55.0}
            ],
            "outcomes": [
                {"outcome": "failed", "attempts": 50, "run_seconds": 50.0, "jobs": 50},
                {"outcome": "retrying", "attempts": 2, "run_seconds": 4.0},
                {"outcome": "lost", "attempts": 1, "run_seconds": 1.0},
            ],
        },
    )
    assert figure(report, "retries' cost")[1:3] == ("5 s", "5 % of run time")
    retries = section(report, "retries")
    assert retries.rows[0][4:6] == (5.0, 0.05)
    assert "what was tried again had run for 5 s" in retries.says
    assert "Attempts after which jobs had failed for good ran for 50 s." in retries.says


def test_figures_stand_beside_those_of_the_time_before(tmp_path: Path) -> None:
    tables: dict[str, Rows] = {
        "throughput": [
            *({"minute": at(60 * hour), "submitted": 9, "completed": 8} for hour in range(-6, 0)),
            {"minute": at(0), "submitted": 4, "completed": 4},
            {"minute": at(239), "submitted": 4, "completed": 4},
        ],
        "outcomes": [
            {"hour": at(-60), "outcome": "completed", "jobs": 3},
            {"hour": at(-60), "outcome": "dead", "jobs": 1},
            {"hour": at(0), "outcome": "completed", "jobs": 8},
        ],
        "errors": [
            {"hour": at(hour), "message": "no route", "occurrences": count}
            for hour, count in ((-300, 90), (-60, 3), (0, 7))
        ],
    }
    report = made(tmp_path, tables, since=at(0))
    assert figure(report, "jobs ended")[1:] == ("8", "8 submitted", False, "the 4 h before: 32")
    assert figure(report, "success").before == "the 4 h before: 75 %"
    assert figure(report, "worst error").before == "the 4 h before: 3×"
    assert "the 4 h before: 75 %" in page(report)


def test_nothing_is_compared_with_a_time_of_which_the_lake_knows_only_a_part(
    tmp_path: Path,
) -> None:
    minutes = [{"minute": at(minute), "submitted": 4} for minute in (-60, 0, 239)]
    report = made(tmp_path, {"throughput": minutes}, since=at(0))
    assert {one.before for one in report.figures} == {""}


# --- the time that a report is about -------------------------------------------------------------


def test_a_short_time_begins_with_its_hour_and_says_so(tmp_path: Path) -> None:
    """It once gave the two minutes since the last whole hour, or a span that ended before it began."""
    minutes = [{"minute": at(minute), "submitted": 1} for minute in range(-120, 42, 20)]
    report = made(tmp_path, {"throughput": minutes}, since=timedelta(minutes=5))
    assert (report.since, report.until) == (at(0), at(41))
    assert report.note == (
        "Asked for from 12:36 on; most of the lake's tables are by the hour, so it begins at 12:00."
    )
    assert report.note in html.unescape(page(report))
    assert made(tmp_path, {"throughput": minutes}, since=timedelta(hours=1)).since == at(-60)
    assert made(tmp_path, {"throughput": minutes}, since=at(0)).note == ""


# --- charts --------------------------------------------------------------------------------------


def drawn(lake: Path, tables: dict[str, Rows], key: str, width: int = WIDE) -> tuple[Section, str]:
    found = section(made(lake, tables), key)
    assert found.data is not None
    return found, svg(DRAWN[key](found.data, width), "x")


def test_a_burst_is_drawn_as_wide_as_it_was(tmp_path: Path) -> None:
    """As steps: no line leads up to it before it came, and none is curved."""
    minutes = [
        {"minute": at(0), "submitted": 1},
        {"minute": at(7), "submitted": 200_000},
        {"minute": at(14), "submitted": 1},
    ]
    _, picture = drawn(tmp_path, {"throughput": minutes}, "traffic")
    (line,) = re.findall(r'mark-line role-mark[^>]*>.*?<path[^>]* d="(M[^"]*)"', picture)
    assert "C" not in line
    points = [tuple(map(float, one.split(","))) for one in re.split("[ML]", line) if one]
    turns = list(pairwise(points))
    assert all(x1 == x2 or y1 == y2 for (x1, y1), (x2, y2) in turns)
    top = min(y for _, y in points)
    (width,) = {x2 - x1 for (x1, y1), (x2, y2) in turns if y1 == y2 == top}
    assert width == pytest.approx((points[-1][0] - points[0][0]) / 15, rel=0.05)


def test_caption_and_legend_name_the_same(tmp_path: Path) -> None:
    minutes = [{"minute": at(minute), "submitted": 3, "dead": 1} for minute in range(5)]
    traffic, picture = drawn(tmp_path, {"throughput": minutes}, "traffic")
    assert traffic.drawn == "Jobs per minute: submitted, failed or dead."
    legend = picture[picture.index("role-legend-label") :]
    assert "submitted" in legend
    assert "failed or dead" in legend
    assert "cancelled" not in picture


def test_of_a_short_time_errors_are_by_the_minute(tmp_path: Path) -> None:
    """Where only hours are known, the caption says so."""
    minutes = [{"minute": at(minute), "retried": minute, "lost": 1} for minute in range(15)]
    group = {"message": "no route", "occurrences": 120, "first_seen": at(0), "last_seen": at(14)}
    tables: dict[str, Rows] = {
        "throughput": minutes,
        "errors": [group],
        "workers": [{"worker": "w", "attempts": 9, "busy_seconds": 90.0}],
        "latency": [WAITED],
        "slo": [LATE],
    }
    found, _ = drawn(tmp_path, tables, "errors")
    assert found.data is not None
    assert found.data["errors"].to_pylist() == [minute + 1 for minute in range(15)]
    assert found.data["at"].to_pylist() == [at(minute) for minute in range(15)]
    assert found.drawn.startswith("Attempts that failed or were lost, per minute, by type")
    for key in ("latency", "objectives", "workers"):
        assert "the lake has this by the hour only" in drawn(tmp_path, tables, key)[0].drawn


def test_over_hours_waits_are_steps_by_type(tmp_path: Path) -> None:
    hours = [
        WAITED | {"hour": at(60 * hour), "type": name} for hour in range(6) for name in ("a", "b")
    ]
    found, picture = drawn(tmp_path, {"throughput": HOURS, "latency": hours}, "latency")
    assert found.drawn == "The wait that 95 % of attempts stayed within, of each type, by hour."
    assert len(re.findall(r"mark-line role-mark", picture)) == 2
    assert "by hour" in found.drawn


def test_what_never_burned_has_no_bar(tmp_path: Path) -> None:
    kept = {"type": "kept", "started": 9, "started_in_time": 9, "ended": 9, "completed": 9}
    kept["completed_in_time"] = 9
    objectives = section(made(tmp_path, {"slo": [LATE, kept]}), "objectives")
    assert objectives.data is not None
    assert objectives.data["type"].to_pylist() == ["send"]
    assert [row[0] for row in objectives.rows] == ["send", "kept"]
    assert section(made(tmp_path, {"slo": [kept]}), "objectives").data is None


def test_workers_of_like_names_are_told_apart(tmp_path: Path) -> None:
    names = [f"pricing/20ff39c81a4e55-{number}" for number in range(3)]
    rows = [{"worker": name, "busy_seconds": 60.0} for name in names]
    _, picture = drawn(tmp_path, {"workers": rows}, "workers", NARROW)
    labels = re.findall(r">(pric[^<]*)</text>", picture)
    assert len(set(labels)) == 3


def test_one_tenant_and_no_path_are_no_section(tmp_path: Path) -> None:
    report = made(tmp_path, {"tenants": [{"attempts": 3, "run_seconds": 3.0}]})
    assert {"tenants", "paths"}.isdisjoint(one.key for one in report.sections)
    assert "Tenants" not in page(report)


def test_one_step_is_no_sparkline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"throughput": [{"minute": at(0), "submitted": 3}], "latency": [WAITED]})
    assert main(["report", "--lake", str(tmp_path)]) == 0
    assert "█" not in capsys.readouterr().out


def test_legends_stay_within_a_phone(tmp_path: Path) -> None:
    minutes = [
        {"minute": at(minute), "submitted": 9, "completed": 7, "dead": 1, "cancelled": 1}
        for minute in range(5)
    ]
    _, picture = drawn(tmp_path, {"throughput": minutes}, "traffic", NARROW)
    legend = picture[picture.index("role-legend-entry") :]
    columns = {float(x) for x in re.findall(r"translate\(([\d.]+),", legend)}
    assert max(columns) < NARROW - 100


# --- what mends it -------------------------------------------------------------------------------


def test_the_command_beside_an_error_finds_its_jobs_and_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(f"sqlite:///{tmp_path / 'jobs.db'}", capsys)
    shell.ok("migrate")

    async def work(jobs: JobManager) -> None:
        await jobs.submit_many([JobSpec(type="send me", queue="mail", payload=n) for n in range(4)])
        for job in await jobs.claim("w", limit=9):
            said = f"smtp{job.payload}: user 'u{job.payload}' isn't known"
            error = PermanentError(said if job.payload else "full", code="E5 03")
            await jobs.fail(job.id, job.token, error)

    shell.manage(work)
    group = {
        "queue": "mail",
        "type": "send me",
        "code": "E5 03",
        "message": collapsed("smtp7: user 'u7' isn't known"),
        "first_seen": at(-60 * 24 * 30),
    }
    words = shlex.split(errors.redrive(group))
    assert words[0] == "headrace"
    assert words[-1] == "--dry-run"
    told = shell.ok(*words[1:], "--json").json
    assert (told["dry_run"], told["done"]) == (True, 3)


def test_each_error_that_ended_jobs_has_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fatal = {"message": "card <n> was declined", "code": "declined", "occurrences": 3, "fatal": 3}
    rows = [
        fatal | {"first_seen": at(3.5), "last_seen": at(9)},
        {"message": "slow", "occurrences": 9},
    ]
    found = section(made(tmp_path, {"errors": rows}), "errors")
    (command,) = found.commands
    assert command.title == "send: declined: card <n> was declined (3 jobs)"
    assert command.command == (
        "headrace redrive --state failed --state dead --queue mail --type send --code declined "
        "--error 'was declined' --since 2026-11-16T12:03:00Z --dry-run"
    )
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["report", "--lake", str(tmp_path)]) == 0
    out = Text.from_ansi(capsys.readouterr().out).plain
    shown = out[
        out.index("headrace redrive") : out.index("--dry-run", out.index("headrace redrive"))
    ]
    assert shlex.split(shown.replace("\\\n", " ")) == shlex.split(command.command)[:-1]
