"""`headrace bulk` and `headrace errors`, on a store of their own."""

from __future__ import annotations

from headrace import JobManager, JobSpec, PermanentError
from tests.cli.shell import Shell


def fill(shell: Shell) -> None:
    """Three jobs that failed of the same error, and one of another."""

    async def work(jobs: JobManager) -> None:
        await jobs.submit_many(
            [JobSpec(type="send", queue="mail", payload={"n": n}) for n in range(4)]
        )
        for job in await jobs.claim("w", limit=10):
            if job.payload["n"]:
                error = PermanentError(f"user {job.payload['n']} is gone", code="E404")
            else:
                error = PermanentError("no route", code="E503")
            await jobs.fail(job.id, job.token, error)
        await jobs.roll_up()

    shell.manage(work)


def test_a_group_of_errors_is_redriven_at_a_rate(shell: Shell) -> None:
    assert shell.ok("errors").out.startswith("no errors; nothing has been counted yet")
    fill(shell)
    told = shell.ok("errors", "--json").json
    assert (told["total"], [one["count"] for one in told["groups"]]) == (2, [3, 1])
    group = told["groups"][0]["group"]
    assert group in shell.ok("errors", "--limit", "1").out
    assert "and 1 other groups" in shell.ok("errors", "--limit", "1").out
    words = ("redrive", "--error", group, "--rate", "500/s")
    assert shell.ok(*words, "--dry-run").out.splitlines()[0] == "3 jobs would be redriven"
    assert shell(*words).code == 2, "there is no terminal to ask on"
    assert "is done: 3 jobs redriven" in shell.ok(*words, "--yes").out
    again = shell.ok(*words, "--yes", "--json").json
    assert (again["done"], again["left"]) == (0, {"redriven before": 3})
    assert shell("redrive", "some-id", "--rate", "1/s").code == 2


def test_acts_are_started_listed_shown_and_cancelled(shell: Shell) -> None:
    fill(shell)
    words = ("bulk", "start", "redrive", "--queue", "mail", "--patch", '{"x": 1}')
    planned = shell.ok(*words, "--dry-run", "--json").json
    assert (planned["done"], len(planned["groups"])) == (4, 2)
    act = shell.ok(*words, "--yes", "--detach", "--json").json
    assert (act["progress"], act["done"], act["expected"]) == ("running", 0, 4)
    (listed,) = shell.ok("bulk", "list", "--json").json["acts"]
    assert listed["id"] == act["id"]
    assert act["id"] in shell.ok("bulk", "list").out
    shell.ok("maintenance", "--once", "--step", "bulk")
    assert shell.ok("bulk", "show", act["id"], "--json").json["done"] == 4
    assert "is done: 4 jobs redriven" in shell.ok("bulk", "cancel", act["id"]).out
    stats = shell.ok("stats", "--json").json["states"]
    assert (stats["failed"], stats["pending"]) == (4, 4)
    lift = ("bulk", "start", "priority", "--state", "pending")
    assert "4 jobs given another priority" in shell.ok(*lift, "--priority", "low", "--yes").out
    assert shell(*lift, "--yes").code == 2
    assert shell("bulk", "show", "none").code == 3
