from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import JobManager, JobSpec, duration
from headrace.clock import ManualClock
from headrace.schedules import Every
from tests.cli.shell import Shell


def add(shell: Shell, name: str, *words: str) -> Any:
    return shell.ok("schedule", "add", name, "--type", "report", *words, "--json").json


def test_add_says_when_it_is_next_due(shell: Shell) -> None:
    answer = shell.ok("schedule", "add", "nightly", "--cron", "0 3 * * *", "--type", "report")
    assert answer.out.startswith("schedule nightly (0 3 * * * UTC, report, queue default) is next")
    assert answer.out.endswith(" 03:00:00Z\n")


def test_json_has_everything(shell: Shell) -> None:
    words = [
        "--every",
        "1h30m",
        "--start",
        "2020-01-01T00:10:00Z",
        "--queue",
        "q",
        "--priority",
        "high",
        "--tag",
        "x",
    ]
    rules = ["--max-attempts", "unlimited", "--misfire", "skip", "--grace", "5m"]
    record = add(shell, "s", *words, *rules, "--payload", '{"n": 1}', "--tenant", "acme")
    ticks = [datetime.fromisoformat(tick) for tick in record.pop("next_ticks")]
    assert len(ticks) == 3
    assert ticks[1] - ticks[0] == timedelta(minutes=90)
    assert (ticks[0] - datetime(2020, 1, 1, 0, 10, tzinfo=UTC)) % timedelta(
        minutes=90
    ) == timedelta()
    assert record.pop("created_at")
    assert record == {
        "name": "s",
        "tenant": "acme",
        "when": {"kind": "every", "seconds": 5400.0, "start": "2020-01-01T00:10:00Z"},
        "job": {
            "type": "report",
            "payload": {"n": 1},
            "queue": "q",
            "priority": 1,
            "tags": ["x"],
            "max_attempts": None,
        },
        "misfire": "skip",
        "grace_seconds": 300.0,
        "paused": False,
        "last_tick": None,
    }
    assert shell.ok("schedule", "list", "--json").json["schedules"][0]["name"] == "s"


def test_list(shell: Shell) -> None:
    assert shell.ok("schedule", "list").out == "no schedules\n"
    add(shell, "nightly", "--cron", "0 3 * * *", "--zone", "Europe/Berlin")
    add(shell, "poll", "--every", "90s")
    header, nightly, poll = shell.ok("schedule", "list").out.splitlines()
    assert header.split() == ["NAME", "WHEN", "TYPE", "NEXT", "LAST"]
    assert "0 3 * * * Europe/Berlin" in nightly
    assert "every 1m30s" in poll
    assert " in 1m" in poll


def test_pause_resume_remove(shell: Shell) -> None:
    add(shell, "s", "--every", "1h")
    assert shell.ok("schedule", "pause", "s").out.endswith("is paused\n")
    (record,) = shell.ok("schedule", "list", "--json").json["schedules"]
    assert (record["paused"], record["next_ticks"]) == (True, [])
    assert "paused" in shell.ok("schedule", "list").out
    assert "is next due at" in shell.ok("schedule", "resume", "s").out
    assert shell.ok("schedule", "remove", "s", "--json").json == {
        "name": "s",
        "tenant": "default",
        "removed": True,
    }
    assert shell.ok("schedule", "list", "--json").json == {"schedules": []}


def test_another_one_under_the_name_is_refused_or_replaces(shell: Shell) -> None:
    first = add(shell, "s", "--every", "1h")
    assert add(shell, "s", "--every", "1h")["created_at"] == first["created_at"]
    answer = shell("schedule", "add", "s", "--every", "2h", "--type", "report", "--json")
    assert (answer.code, answer.out) == (1, "")
    assert json.loads(answer.err.splitlines()[1])["code"] == "DUPLICATE_SCHEDULE"
    assert add(shell, "s", "--every", "2h", "--replace")["when"]["seconds"] == 7200


@pytest.mark.parametrize("verb", ["pause", "resume", "remove"])
def test_an_unknown_name_is_not_found_and_a_tenants_is_hinted_at(shell: Shell, verb: str) -> None:
    answer = shell("schedule", verb, "nobody")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err == "headrace: schedule nobody was not found; nothing was changed\n"
    add(shell, "theirs", "--every", "1h", "--tenant", "acme")
    assert shell("schedule", verb, "theirs").err.endswith(
        "tenant acme has one: add --tenant acme\n"
    )
    assert shell("schedule", verb, "theirs", "--tenant", "other").err.endswith("was changed\n")
    assert shell("schedule", verb, "theirs", "--tenant", "acme").code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "give --cron EXPRESSION or --every DURATION"),
        (("--cron", "0 3 * * *", "--every", "1h"), "give --cron EXPRESSION or --every DURATION"),
        (("--cron", "0 25 * * *"), "bad hour"),
        (("--cron", "0 3 * * *", "--zone", "Mars"), "no time zone 'Mars'"),
        (("--cron", "0 3 * * *", "--start", "2026-01-01T00:00:00Z"), "--start is for --every"),
        (("--every", "1h", "--zone", "UTC"), "--zone is for --cron"),
        (("--every", "0.5s"), "the shortest is 1"),
        (("--every", "1h", "--grace", "5s"), "--grace is for --misfire skip"),
        (("--every", "1h", "--misfire", "maybe"), "'maybe' is not one of"),
    ],
)
def test_usage_errors(shell: Shell, words: tuple[str, ...], told: str) -> None:
    answer = shell("schedule", "add", "s", "--type", "report", *words)
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("seconds", [1, 60, 90, 3600, 5400, 86_400, 129_600, 2.5, 61.25, 1.000001])
def test_intervals_are_shown_as_they_can_be_typed(seconds: float) -> None:
    assert duration.parse(duration.exact(seconds)) == pytest.approx(seconds)


def test_run_now(shell: Shell) -> None:
    shell.ok("schedule", "add", "nightly", "--every", "1h", "--type", "report")
    job = shell.ok("schedule", "run", "nightly", "--json").json
    assert (job["type"], job["tags"], job["state"]) == ("report", ["schedule=nightly"], "pending")
    assert shell.ok("schedule", "run", "nightly").out.startswith("schedule nightly: submitted ")
    assert shell("schedule", "run", "none").code == 3


def _prepare(shell: Shell) -> None:
    """A schedule that is due, and a lease that has lapsed."""

    async def work(jobs: JobManager) -> None:
        await jobs.schedule("s", Every(60), JobSpec(type="report"))
        await jobs.submit(JobSpec(type="t", lease_seconds=5))
        await jobs.claim("gone")

    shell.manage(work, ManualClock(datetime.now(UTC) - timedelta(minutes=5)))


def test_maintenance_once(shell: Shell) -> None:
    _prepare(shell)
    answer = shell.ok("maintenance", "--once")
    assert answer.out.split("\n") == [
        "reap       1 job",
        "lifetimes  0 jobs",
        "sweep      0 jobs",
        "schedules  1 job",
        "bulk       0 jobs",
        "history    4 events",
        "retention  0 jobs",
        "",
    ]
    again = shell.ok("maintenance", "--once", "--step", "schedules", "--json").json
    assert [(one["step"], one["count"]) for one in again["steps"]] == [("schedules", 0)]
    listed = shell.ok("list", "--type", "report", "--json").json["jobs"]
    assert [job["tags"] for job in listed] == [["schedule=s"]]
    assert shell.ok("schedule", "list", "--json").json["schedules"][0]["last_tick"]


def test_maintenance_runs_until_it_is_told_to_stop(shell: Shell) -> None:
    _prepare(shell)
    words = ["--url", shell.url, "maintenance", "--json", "--step", "schedules", "--step", "reap"]
    with subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            told = [json.loads(process.stdout.readline()) for _ in range(2)]
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert {one["step"]: one["count"] for one in told} == {"schedules": 1, "reap": 1}
    assert (process.returncode, err) == (0, "")
