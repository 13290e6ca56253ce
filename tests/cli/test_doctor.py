from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headrace import JobManager, JobSpec
from headrace.clock import ManualClock
from tests.cli.shell import Shell

LINES_OF_THE_MANAGER = {
    "clock",
    "backlog",
    "workers",
    "dead letters",
    "expired leases",
    "outlived jobs",
    "dependencies to sweep",
}


def test_a_healthy_store(shell: Shell) -> None:
    shell.submit("a", "--delay", "1h")
    answer = shell.ok("doctor")
    assert "integrity" in answer.out
    report = shell.ok("doctor", "--json").json
    assert report["healthy"] is True
    found = {one["what"]: one for one in report["findings"]}
    assert found["durability"]["value"] == "journal wal, synchronous full"
    assert found["backlog"]["value"] == "0 ready, 1 delayed, 0 blocked"
    assert {one["health"] for one in report["findings"]} == {"ok"}


def test_what_needs_care_is_a_warning_with_advice(shell: Shell) -> None:
    shell.submit("a")
    shell.ok("pause", "mail")
    report = shell.ok("doctor", "--json").json
    assert report["healthy"] is True
    warned = {
        one["what"]: one["advice"] for one in report["findings"] if one["health"] == "warning"
    }
    assert set(warned) == {"backlog", "queue mail"}
    assert all(warned.values())


def test_relaxed_durability_is_a_warning(shell: Shell) -> None:
    shell.submit("a", "--delay", "1h")
    answer = shell.bare("doctor", "--url", f"{shell.url}?synchronous=normal")
    assert "warning  durability" in answer.out


def test_a_missing_file_is_not_created(shell: Shell) -> None:
    assert shell.bare("doctor", "--url", "sqlite:///nowhere/at/all.db").code == 4


def _findings(shell: Shell) -> dict[str, Any]:
    """By what they are about, of a store with a job that waits and one whose worker is long gone."""

    async def leave_behind(jobs: JobManager) -> None:
        await jobs.submit(JobSpec(type="t", lease_seconds=10))
        await jobs.claim("gone")

    shell.ok("migrate")
    shell.manage(leave_behind, ManualClock())
    shell.submit("a", "--delay", "1h")
    answer = shell("doctor", "--json")
    found = {one["what"]: one for one in answer.json["findings"]}
    errors = [what for what, one in found.items() if one["health"] == "error"]
    assert answer.json["healthy"] is (not errors)
    assert answer.code == (1 if errors else 0)
    assert all(one["advice"] for one in found.values() if one["health"] != "ok")

    assert set(found) >= LINES_OF_THE_MANAGER
    assert (found["expired leases"]["health"], found["expired leases"]["value"]) == ("warning", "1")
    assert found["backlog"]["value"] == "0 ready, 1 delayed, 0 blocked"
    assert re.fullmatch(
        r"the store's is [+-]\d+\.\d{3} s from this host's", found["clock"]["value"]
    )
    shown = shell("doctor").out
    assert [what for what in found if what not in shown] == []
    return found


@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
def test_the_report_on_postgresql(shell: Shell, store_url: str) -> None:
    shell.url = store_url
    found = _findings(shell)
    assert re.fullmatch(r"PostgreSQL \d+\..*", found["server"]["value"])
    # The server of these tests does not wait for the disk: a report that says so is right.
    settings = {what: found[what] for what in ("fsync", "full_page_writes", "synchronous_commit")}
    assert all((one["health"] == "ok") is (one["value"] != "off") for one in settings.values())
    assert re.fullmatch(r".+, version (\d+) of \1", found["schema"]["value"])
    for what in ("oldest transaction", "oldest writing transaction"):
        assert re.fullmatch(r"none|\d+\.\d s", found[what]["value"])
    assert found["event log"]["value"] == "numbered by this server"
    for table in ("bodies", "events", "jobs", "job_tags"):
        assert re.fullmatch(r"\d+ dead of \d+ rows", found[f"table {table}"]["value"])
    assert re.fullmatch(r"\d+ of \d+", found["connections"]["value"])


@pytest.mark.parametrize("store_url", ["redis"], indirect=True)
def test_the_report_on_redis(shell: Shell, store_url: str) -> None:
    shell.url = store_url
    found = _findings(shell)
    assert re.fullmatch(r"(Redis|Valkey) \d+\..*", found["server"]["value"])
    assert re.match(r"always|.+, accepted by durability=relaxed", found["durability"]["value"])
    assert found["maxmemory-policy"]["value"] == "noeviction"
    assert re.fullmatch(r"(\d+) of \1", found["schema"]["value"])
    assert found["role"]["value"] == "master"
    assert re.match(r"\d+ bytes used", found["memory"]["value"])
    assert found["jobs"]["value"] == "2"


def test_schedules_without_a_task_are_named_where_the_application_is(
    shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / "nightly_jobs.py").write_text(
        "from headrace import Headrace\n\napp = Headrace()\n\n\n@app.task(name='kept', version=2)\n"
        "async def kept() -> None: ...\n"
    )
    shell.ok("schedule", "add", "stays", "--every", "1h", "--type", "kept@2")
    shell.ok("schedule", "add", "goes", "--every", "1h", "--type", "renamed")
    shell.ok("schedule", "add", "held", "--every", "1h", "--type", "renamed")
    shell.ok("schedule", "pause", "held")
    plain = shell.ok("doctor", "--json").json["findings"]
    assert not [one for one in plain if one["what"].startswith("schedule")]
    told = shell.ok("doctor", "--app", "nightly_jobs:app", "--json").json["findings"]
    found = {one["what"]: one for one in told if one["what"].startswith("schedule")}
    assert set(found) == {"schedules", "schedule goes"}
    assert found["schedule goes"]["health"] == "warning"
    assert "headrace schedule remove goes" in found["schedule goes"]["advice"]
    assert shell("doctor", "--app", "nowhere:app").code == 2
