from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headrace.clock import ManualClock
from headrace.manager import JobManager
from tests.cli.shell import Shell


@pytest.fixture
def cursors(shell: Shell) -> list[str]:
    """Of the events of three jobs: two of an hour ago, one of now."""
    ago = ManualClock(datetime.now(UTC) - timedelta(hours=1))
    shell.end("completed", clock=ago)
    shell.end("dead", clock=ago)
    shell.end("completed")
    return [event["cursor"] for event in shell.ok("events", "--json").json_lines]


def reach(shell: Shell, name: str, cursor: str, label: str | None = None) -> None:
    async def say(jobs: JobManager) -> None:
        await jobs.reader_reached(name, cursor, label=label)

    shell.manage(say)


def test_old_events_are_trimmed_once_readers_hold_them(shell: Shell, cursors: list[str]) -> None:
    reach(shell, "lake", cursors[3])
    dry = shell.ok("events", "trim", "--keep", "30m", "--dry-run")
    assert dry.out == "4 events would be trimmed\n  the rest waits for reader lake\n"
    assert shell.ok("events", "trim", "--keep", "30m", "--dry-run", "--json").json == {
        "dry_run": True,
        "trimmed": 4,
        "held_back_by": ["lake"],
    }
    assert len(shell.ok("events", "--json").json_lines) == 9
    answer = shell.ok("events", "trim", "--keep", "30m")
    assert answer.out == "4 events trimmed\n  the rest waits for reader lake\n"
    reach(shell, "lake", cursors[-1])
    assert shell.ok("events", "trim", "--keep", "30m", "--json").json == {
        "dry_run": False,
        "trimmed": 2,
        "held_back_by": [],
    }
    rest = [event["cursor"] for event in shell.ok("events", "--json").json_lines]
    assert rest == cursors[6:]


def test_a_cursor_from_before_a_trim_is_told(shell: Shell, cursors: list[str]) -> None:
    shell.ok("events", "trim", "--keep", "30m", "--without-readers")
    answer = shell("events", "--after", cursors[2])
    assert (answer.code, answer.out) == (1, "")
    assert "trimmed past the cursor 3: it begins after 6" in answer.err
    assert len(shell.ok("events", "--after", cursors[5], "--json").json_lines) == 3


def test_without_readers_it_is_refused(shell: Shell, cursors: list[str]) -> None:
    answer = shell("events", "trim", "--keep", "0s", "--json")
    assert answer.code == 1
    assert '"code":"NO_READERS"' in answer.err
    assert len(shell.ok("events", "--json").json_lines) == len(cursors)
    assert shell("events", "trim", "--keep", "0s", "--without-readers", "--tenant", "a").code == 2
    assert shell("events", "trim").code == 2


def test_readers_are_listed_with_their_lag(shell: Shell, cursors: list[str]) -> None:
    assert shell.ok("events", "readers").out == "no readers\n"
    reach(shell, "lake", cursors[3], label="/data/lake")
    reach(shell, "audit", cursors[-1])
    header, audit, lake = shell.ok("events", "readers").out.splitlines()
    assert header.split() == ["READER", "BEHIND", "SINCE", "LAST", "HEARD", "OF", "LABEL"]
    assert audit.split()[:5] == ["audit", "0", "events", "holds", "all"]
    assert lake.split()[:5] == ["lake", "5", "events", "1h", "ago"]
    assert lake.endswith("/data/lake")
    told = {one["name"]: one for one in shell.ok("events", "readers", "--json").json["readers"]}
    assert told["lake"]["cursor"] == cursors[3]
    assert told["lake"]["behind"]["events"] == 5
    assert told["audit"]["behind"]["oldest_at"] is None


def test_a_reader_can_be_forgotten(shell: Shell, cursors: list[str]) -> None:
    reach(shell, "lake", cursors[0])
    assert shell.ok("events", "forget", "lake").out == "reader lake is forgotten\n"
    answer = shell("events", "forget", "lake")
    assert (answer.code, answer.out) == (3, "")
    assert shell.ok("events", "readers", "--json").json == {"readers": []}


def test_options_of_the_log_are_not_for_the_commands_below_it(shell: Shell) -> None:
    answer = shell("events", "--follow", "trim", "--keep", "1d")
    assert answer.code == 2
    assert "--follow is not for trim" in answer.err
    assert shell("events", "nothing").code == 2
    assert shell.ok("events", "--json", "readers").json == {"readers": []}
