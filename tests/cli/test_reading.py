from __future__ import annotations

import asyncio

import pytest

from headrace import Context, Headrace, JobManager, Worker, WorkerSettings
from headrace.retry import NoBackoff
from tests.cli.shell import Shell


def test_show_tells_all_about_a_job(shell: Shell) -> None:
    first = shell.submit("extract")
    job = shell.submit(
        "load", "--id", "l", "--after", first, "--tag", "x", "--key", "k",
        "--payload", '{"a":1}', "--priority", "low",
    )  # fmt: skip
    shown = dict(line.split(maxsplit=1) for line in shell.ok("show", job).out.splitlines())
    assert shown["id"] == "l"
    assert shown["state"] == "blocked"
    assert shown["priority"] == "normal"  # as urgent as the most urgent job it waits for
    assert shown["tags"] == "x"
    assert shown["key"] == "k"
    assert shown["attempts"] == "0 of 3"
    assert shown["payload"] == '{"a":1}'
    assert shown["depends"] == f"on  {first} (after)"
    assert "ago)" in shown["created"] or "just now" in shown["created"]
    assert "result" not in shown
    parent = shell.ok("show", first, "--json").json
    assert parent["dependents"] == [{"job_id": "l", "kind": "after", "outcome": None}]


def test_show_has_result_and_error(shell: Shell) -> None:
    assert shell.ok("show", shell.end("completed"), "--json").json["result"] == {"sum": 3}
    failed = shell.end("failed")
    assert "last error  E1: no such user (permanent)\n" in shell.ok("show", failed).out
    record = shell.ok("show", failed, "--json").json
    assert record["failure"] == {"message": "no such user", "category": "permanent", "code": "E1"}
    assert record["finalized_at"].endswith("Z")


def test_what_a_job_says_does_not_steer_the_terminal(shell: Shell) -> None:
    job = shell.submit("a", "--payload", '"\\u009b2J"')
    token = shell.run(job)

    async def work(jobs: JobManager) -> None:
        await jobs.progress(job, token, 0.5)
        await jobs.fail(job, token, "bad\x1b[31m\nthing", category=None)

    shell.manage(work)
    for words in (("show", job), ("list",), ("events",)):
        out = shell.ok(*words).out
        assert "\x1b" not in out
        assert "\x9b" not in out
    assert "bad\\x1b[31m thing" in shell.ok("show", job).out
    assert "progress    50%" in shell.ok("show", job).out


def test_list_is_newest_first_and_pages(shell: Shell) -> None:
    ids = [shell.submit("a") for _ in range(5)]
    first = shell.ok("list", "--limit", "2", "--json").json
    assert [job["id"] for job in first["jobs"]] == [ids[4], ids[3]]
    seen = list(first["jobs"])
    cursor = first["cursor"]
    shell.submit("a")  # what is new does not move the pages
    while cursor is not None:
        page = shell.ok("list", "--limit", "2", "--json", "--cursor", cursor).json
        seen += page["jobs"]
        cursor = page["cursor"]
    assert [job["id"] for job in seen] == ids[::-1]
    assert (
        shell.ok("list", "--oldest-first", "--limit", "1", "--json").json["jobs"][0]["id"] == ids[0]
    )


def test_list_prints_the_next_cursor_for_people(shell: Shell) -> None:
    ids = [shell.submit("a") for _ in range(3)]
    *rows, more = shell.ok("list", "--limit", "2").out.splitlines()
    assert rows[0].split()[:3] == ["ID", "TYPE", "STATE"]
    assert [row.split()[0] for row in rows[1:]] == [ids[2], ids[1]]
    option, cursor = more.removeprefix("more: add ").split()
    assert option == "--cursor"
    last = shell.ok("list", "--limit", "2", "--cursor", cursor).out
    assert ids[0] in last
    assert "more:" not in last
    assert shell.ok("list", "--type", "nothing").out == "no jobs\n"


def test_list_filters(shell: Shell) -> None:
    a = shell.submit("a", "--queue", "q", "--tag", "x", "--tag", "y")
    b = shell.submit("b", "--queue", "q", "--tag", "x")
    dead = shell.end("dead")
    for words, expected in (
        (("--queue", "q"), [b, a]),
        (("--type", "a"), [a]),
        (("--type", "a", "--type", "b"), [b, a]),
        (("--tag", "x"), [b, a]),
        (("--tag", "x", "--tag", "y"), [a]),
        (("--state", "dead"), [dead]),
        (("--state", "dead", "--state", "pending"), [dead, b, a]),
        (("--worker", "worker-1"), [dead]),
        (("--created-from", "2099-01-01T00:00:00Z"), []),
        (("--created-before", "2099-01-01T00:00:00Z"), [dead, b, a]),
    ):
        found = shell.ok("list", "--json", *words).json["jobs"]
        assert [job["id"] for job in found] == expected, words


def test_list_shows_errors_on_one_line(shell: Shell) -> None:
    shell.end("dead")
    out = shell.ok("list").out
    assert out.count("\n") == 2
    assert out.rstrip().endswith("the server is busy")


def test_stats_by_queue(shell: Shell) -> None:
    shell.ok("submit", "a", "--queue", "mail", "--count", "3", "-q")
    shell.submit("a", "--queue", "mail", "--delay", "1h")
    shell.end("completed")
    shell.end("dead")
    shell.ok("pause", "mail")
    header, default, mail, everything = (
        line.split() for line in shell.ok("stats").out.splitlines()
    )
    assert header == ["QUEUE", "READY", "DELAYED", "COMPLETED", "DEAD", "TOTAL"]
    assert default == ["default", "0", "0", "1", "1", "2"]
    assert mail == ["mail", "(paused)", "3", "1", "0", "0", "4"]
    assert everything == ["all", "3", "1", "1", "1", "6"]
    record = shell.ok("stats", "--json").json
    assert (record["total"], record["ready"], record["delayed"], record["failures"]) == (6, 3, 1, 1)
    assert record["states"]["pending"] == 4
    assert len(record["states"]) == 11
    assert [(q["queue"], q["paused"], q["total"]) for q in record["queues"]] == [
        ("default", False, 2),
        ("mail", True, 4),
    ]
    assert shell.ok("stats", "--queue", "default", "--json").json["total"] == 2


def test_stats_of_nothing_and_of_a_paused_queue_without_jobs(shell: Shell) -> None:
    assert shell.ok("stats").out == "no jobs\n"
    shell.ok("pause", "mail")
    assert "mail (paused)" in shell.ok("stats").out


@pytest.mark.parametrize("json", [True, False])
def test_explain(shell: Shell, json: bool) -> None:
    first = shell.submit("a", "--delay", "2h")
    second = shell.submit("b", "--after", first)
    shell.ok("pause", "default")
    if json:
        record = shell.ok("explain", second, "--json").json
        assert record["job"]["id"] == second
        assert [one["why"] for one in record["reasons"]] == ["blocked", "paused", "no_worker"]
        assert record["reasons"][0]["facts"]["waits_for"] == [first]
        due = shell.ok("explain", first, "--json").json["reasons"][0]
        assert due["facts"]["run_at"].endswith("Z")
    else:
        head, *reasons = shell.ok("explain", second).out.splitlines()
        assert head == f"{second} (b, queue default) is blocked:"
        assert reasons[0] == f"  - it waits for 1 of 1 jobs: {first} (pending)"
        assert len(reasons) == 3
        assert "(in 1h59m)" in shell.ok("explain", first).out
    assert shell("explain", "nothing").code == 3


def test_explain_a_queue(shell: Shell) -> None:
    shell.submit("a")
    job = shell.submit("b")
    assert shell.ok("explain", job, "--json").json["place"] == {"ahead": 1, "at_least": False}
    assert shell.ok("explain", job).out.splitlines()[-1] == "  in line behind 1 of its queue"
    record = shell.ok("explain", "--queue", "default", "--json").json
    assert (record["ready"], record["running"], record["delayed"]) == (2, 0, 0)
    assert [one["why"] for one in record["reasons"]] == ["no_worker"]
    head, reason = shell.ok("explain", "--queue", "default").out.splitlines()
    assert head.startswith("queue default: 2 ready, the first for ")
    assert reason == "  - nobody has asked for it in the last 60 seconds"
    assert shell("explain").code == shell("explain", job, "--queue", "default").code == 2


def test_failed_attempts_are_shown_with_their_class_and_where_they_failed(shell: Shell) -> None:
    app = Headrace(shell.url)

    @app.task(max_attempts=2, retry=NoBackoff())
    async def charge() -> str:
        return {"\x1b[31m": ""}["customer"]

    async def run() -> None:
        async with app:
            await charge.options(id="broken").submit()
            await Worker(app, WorkerSettings(maintenance=False)).drain()

    asyncio.run(run())
    assert "KeyError: 'customer'" in shell.ok("list").out
    shown = shell.ok("show", "broken").out
    assert "last error  KeyError: 'customer' (temporary)\n" in shown
    assert "failed attempts:\n    1, " in shown
    assert shown.count("in charge\n") == 2
    assert shown.count(": KeyError: 'customer' (temporary)\n      Traceback (most recent") == 2
    first, second = shell.ok("show", "broken", "--json").json["failed_attempts"]
    assert (first["attempt"], first["state"], second["state"]) == (1, "retrying", "dead")
    assert (second["code"], second["message"]) == ("KeyError", "'customer'")
    assert second["traceback"].endswith("\nKeyError: 'customer'\n")


def test_show_prints_what_handlers_have_logged(shell: Shell) -> None:
    app = Headrace(shell.url)

    @app.task
    async def work(ctx: Context) -> None:
        ctx.log("half way\x1b[31m", rows=7)

    async def run() -> None:
        async with app:
            await work.options(id="logged").submit()
            await Worker(app, WorkerSettings(maintenance=False)).drain()

    asyncio.run(run())
    assert "attempt 1: half way\\x1b[31m rows=7\n" in shell.ok("show", "logged").out
    document = shell.ok("show", "logged", "--json").json
    assert document["log"][0]["fields"] == {"rows": 7}
