from __future__ import annotations

import pytest

from tests.cli.shell import Shell


def test_a_waiting_job_is_cancelled_with_its_reason(shell: Shell) -> None:
    job = shell.submit("a")
    answer = shell.ok("cancel", job, "--reason", "wrong address")
    assert answer.out == f"1 job cancelled\n  {job}  a  cancelled\n"
    shown = shell.ok("show", job, "--json").json
    assert (shown["state"], shown["failure"]["message"]) == ("cancelled", "wrong address")
    assert shell("cancel", job).code == 0  # it is cancelled, as was wished


def test_json(shell: Shell) -> None:
    job = shell.submit("a")
    assert shell.ok("cancel", job, "--json").json == {
        "dry_run": False,
        "jobs": [{"id": job, "state": "cancelled"}],
        "already": [],
        "refused": [],
        "ended": [],
        "not_found": [],
    }


def test_a_running_job_is_asked_cancelled_or_left_as_the_mode_says(shell: Shell) -> None:
    job = shell.submit("a")
    shell.run(job)
    refused = shell("cancel", job, "--mode", "not_started")
    assert refused.code == 1
    assert "left running" in refused.out
    assert refused.err == f"headrace: 1 job not cancelled: job {job} is running\n"
    assert "asked to stop" in shell.ok("cancel", job).out
    assert shell.state(job) == "cancelling"
    assert "asked to stop before" in shell.ok("cancel", job).out
    assert "1 job cancelled" in shell.ok("cancel", job, "--mode", "immediate").out
    assert shell.state(job) == "cancelled"


def test_ended_and_unknown_jobs(shell: Shell) -> None:
    done = shell.end("completed")
    ended = shell("cancel", done)
    assert ended.code == 1
    assert ended.err == f"headrace: job {done} is completed: ended jobs cannot be cancelled\n"
    job = shell.submit("a")
    unknown = shell("cancel", job, "nothing", "--json")
    assert unknown.code == 3
    assert unknown.json["not_found"] == ["nothing"]
    assert unknown.json["jobs"] == [{"id": job, "state": "cancelled"}]
    assert unknown.err.splitlines()[0] == "headrace: not found: nothing"


def test_a_dry_run_changes_nothing(shell: Shell) -> None:
    job = shell.submit("a", "--tag", "x")
    assert "1 job would be cancelled" in shell.ok("cancel", "--tag", "x", "--dry-run").out
    record = shell.ok("cancel", "--tag", "x", "--dry-run", "--json").json
    assert (record["dry_run"], record["jobs"]) == (True, [{"id": job, "state": "cancelled"}])
    assert shell.state(job) == "pending"


def test_by_tag_it_wants_yes_where_nobody_can_be_asked(shell: Shell) -> None:
    job = shell.submit("a", "--tag", "x", "--tag", "y")
    other = shell.submit("a", "--tag", "x")
    answer = shell("cancel", "--tag", "x", "--tag", "y")
    assert (answer.code, answer.out) == (2, "")
    assert "to act by --tag give --yes: there is no terminal to ask on" in answer.err
    assert shell("cancel", "--tag", "nobody").code == 2
    assert shell.state(job) == "pending"
    assert "1 job cancelled" in shell.ok("cancel", "--tag", "x", "--tag", "y", "--yes").out
    assert (shell.state(job), shell.state(other)) == ("cancelled", "pending")
    assert "nothing to cancel" in shell.ok("cancel", "--tag", "nobody", "--yes").out


@pytest.mark.usefixtures("terminal")
def test_on_a_terminal_it_asks(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    job = shell.submit("a", "--tag", "x")
    asked: list[str] = []

    def answers(word: str) -> None:
        def read(prompt: str = "") -> str:
            asked.append(prompt)
            return word

        monkeypatch.setattr("click.termui.visible_prompt_func", read)

    answers("n")
    declined = shell("cancel", "--tag", "x")
    assert (declined.code, declined.out) == (1, "")
    assert declined.err.splitlines()[-1].endswith("headrace: nothing was changed")
    assert "This will cancel 1 job. Go on?" in declined.err + asked[0]
    assert shell.state(job) == "pending"
    answers("y")
    assert shell("cancel", "--tag", "x").code == 0
    assert shell.state(job) == "cancelled"
    assert len(asked) == 2
    shell("cancel", "--tag", "x")  # nothing left to cancel: nothing to ask
    assert len(asked) == 2
