from __future__ import annotations

import threading
import time

from tests.cli.shell import Shell


def test_events_are_json_lines_that_a_cursor_resumes(shell: Shell) -> None:
    job = shell.end("completed", tags=["x"])
    events = shell.ok("events", "--json").json_lines
    assert [event["kind"] for event in events] == ["enqueued", "leased", "completed"]
    assert {event["job_id"] for event in events} == {job}
    assert events[0]["detail"]["tags"] == ["x"]
    assert events[0]["at"].endswith("Z")
    assert (events[2]["before"], events[2]["after"]) == ("running", "completed")
    rest = shell.ok("events", "--json", "--after", events[0]["cursor"]).json_lines
    assert rest == events[1:]
    assert shell.ok("events", "--json", "--after", events[2]["cursor"]).out == ""
    assert shell.ok("events", "--json", "--after", "end").out == ""
    assert shell.ok("events", "--json", "--limit", "2").json_lines == events[:2]


def test_events_for_people(shell: Shell) -> None:
    job = shell.end("dead")
    lines = shell.ok("events").out.splitlines()
    assert len(lines) == 3
    assert f"  enqueued    {job}  work" in lines[0]
    assert "attempt 1, by worker-1 after" in lines[1]
    assert lines[2].endswith("the server is busy")
    first, more = shell.ok("events", "--limit", "1").out.splitlines()
    assert first == lines[0]
    option, cursor = more.removeprefix("more: add ").split()
    assert option == "--after"
    assert shell.ok("events", "--after", cursor).out.splitlines() == lines[1:]
    assert shell.ok("events", "--after", "end").out == "no events\n"


def test_events_of_one_job(shell: Shell) -> None:
    shell.submit("a")
    job = shell.submit("b")
    events = shell.ok("events", "--job", job, "--json").json_lines
    assert [event["job_id"] for event in events] == [job]
    assert shell("events", "--job", "nothing").code == 3


def test_a_limit_above_one_page_is_kept(shell: Shell) -> None:
    shell.ok("submit", "a", "--count", "1500", "-q")
    assert len(shell.ok("events", "--limit", "1200", "--json").json_lines) == 1200
    assert len(shell.ok("events", "--limit", "5000", "--json").json_lines) == 1500


def test_follow_ends_after_the_timeout(shell: Shell) -> None:
    shell.submit("a")
    start = time.monotonic()
    assert len(shell.ok("events", "--follow", "--timeout", "0.2s", "--json").json_lines) == 1
    assert time.monotonic() - start >= 0.2


def test_follow_ends_at_the_limit(shell: Shell) -> None:
    shell.submit("a", "--count", "3")
    assert len(shell.ok("events", "-f", "--limit", "2", "--json").json_lines) == 2


def test_follow_shows_what_another_process_does(shell: Shell) -> None:
    job = shell.submit("a")

    async def later() -> None:
        from headrace import JobSpec, connect

        async with await connect(shell.url) as jobs:
            await jobs.submit(JobSpec(type="noise"))
            await jobs.cancel([job])

    def start() -> None:
        import asyncio

        asyncio.run(later())

    timer = threading.Timer(0.5, start)
    timer.start()
    try:
        answer = shell.ok("events", "--job", job, "--after", "end", "-f", "--limit", "1", "--json")
    finally:
        timer.join()
    assert [event["kind"] for event in answer.json_lines] == ["cancelled"]
