from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headrace.clock import ManualClock
from tests.cli.shell import Shell


def test_redrive_makes_a_new_job_linked_to_the_old(shell: Shell) -> None:
    dead = shell.end("dead")
    answer = shell.ok("redrive", dead)
    head, link = answer.out.splitlines()
    assert head == "1 job redriven"
    old, arrow, new = link.split()
    assert (old, arrow) == (dead, "->")
    assert shell.ok("show", new, "--json").json["previous_id"] == dead
    assert shell.state(dead) == "dead"
    again = shell.ok("redrive", dead, "--json").json
    assert again == {
        "dry_run": False,
        "jobs": [{"previous_id": dead, "id": new, "created": False}],
    }
    assert "; redriven before, and not ended yet: 1" in shell.ok("redrive", dead).out


def test_redrive_by_tag_passes_over_what_did_not_fail(shell: Shell) -> None:
    dead = shell.end("dead", tags=["x"])
    failed = shell.end("failed", tags=["x"])
    shell.end("completed", tags=["x"])
    plan = shell.ok("redrive", "--tag", "x", "--dry-run", "--json").json
    assert plan["dry_run"] is True
    assert [(one["previous_id"], one["id"]) for one in plan["jobs"]] == [
        (dead, None),
        (failed, None),
    ]
    assert "2 jobs would be redriven" in shell.ok("redrive", "--tag", "x", "--dry-run").out
    assert shell.ok("stats", "--json").json["total"] == 3
    done = shell.ok("redrive", "--tag", "x", "--json").json
    assert [one["previous_id"] for one in done["jobs"]] == [dead, failed]
    assert shell.ok("stats", "--json").json["ready"] == 2
    assert shell.ok("redrive", "--tag", "nobody").out == "0 jobs redriven\n"


def test_redrive_refuses_what_did_not_fail_and_what_is_unknown(shell: Shell) -> None:
    done = shell.end("completed")
    for words in ((done,), (done, "--dry-run")):
        answer = shell("redrive", *words)
        assert (answer.code, answer.out) == (1, "")
        assert f"job {done} is completed" in answer.err
        assert shell("redrive", "nothing", *words).code == 3
    assert shell.ok("stats", "--json").json["total"] == 1


def test_delete_takes_ended_jobs_all_or_none(shell: Shell) -> None:
    done, dead = shell.end("completed"), shell.end("dead")
    waiting = shell.submit("a")
    refused = shell("delete", done, waiting)
    assert (refused.code, refused.out) == (1, "")
    assert f"job {waiting} is pending" in refused.err
    assert "none would be deleted" in shell.ok("delete", done, waiting, "--dry-run").out
    plan = shell.ok("delete", done, "--dry-run", "--json").json
    assert plan == {"dry_run": True, "deleted": [done], "not_found": []}
    assert shell.state(done) == "completed"
    record = shell.ok("delete", done, dead, "--json").json
    assert record == {"dry_run": False, "deleted": [done, dead], "not_found": []}
    assert shell("show", done).code == 3
    assert shell.ok("events", "--json").out  # the log stays


def test_delete_says_what_was_not_there(shell: Shell) -> None:
    done = shell.end("completed")
    answer = shell("delete", done, "nothing", "--json")
    assert answer.code == 3
    assert answer.json == {"dry_run": False, "deleted": [done], "not_found": ["nothing"]}
    assert answer.err.splitlines()[0] == "headrace: not found: nothing"
    assert shell("delete", "nothing").out == ""


def test_delete_by_tag_wants_yes(shell: Shell) -> None:
    done = shell.end("completed", tags=["x"])
    assert shell("delete", "--tag", "x").code == 2
    assert shell.state(done) == "completed"
    assert "1 job would be deleted" in shell.ok("delete", "--tag", "x", "--dry-run").out
    assert "1 job deleted" in shell.ok("delete", "--tag", "x", "--yes").out
    assert shell.ok("stats").out == "no jobs\n"


def test_cleanup_follows_the_policies_or_the_options(shell: Shell) -> None:
    now = datetime.now(UTC)
    old = ManualClock(now - timedelta(days=40))
    shell.end("completed", clock=old)
    shell.end("dead", clock=old)
    recent = shell.end("completed")
    policies = shell.ok("cleanup", "--json").json
    assert policies == {
        "total": 1,
        "deleted": {"completed": 1, "failed": 0, "dead": 0, "cancelled": 0, "abandoned": 0},
    }
    assert shell.ok("cleanup").out == "0 jobs deleted\n"
    assert shell.ok("cleanup", "--completed-older-than", "1d").out == "0 jobs deleted\n"
    assert shell.ok("cleanup", "--other-older-than", "30d").out == "1 job deleted\n  1 dead\n"
    assert shell.state(recent) == "completed"
    both = shell.ok("cleanup", "--completed-older-than", "0s", "--other-older-than", "90d")
    assert both.out == "1 job deleted\n  1 completed\n"
