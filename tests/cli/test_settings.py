from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.mark.parametrize(
    "words",
    [("--json", "stats"), ("stats", "--json"), ("--json", "stats", "--json")],
)
def test_json_may_stand_before_or_after_the_command(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell.ok(*words).json["total"] == 0


def test_the_url_may_stand_before_or_after_and_the_later_wins(shell: Shell) -> None:
    shell.submit("a")
    assert shell.bare("stats", "--url", shell.url, "--json").json["total"] == 1
    assert shell.bare("--url", "memory:", "stats", "--url", shell.url, "--json").json["total"] == 1
    assert shell.bare("--url", shell.url, "stats", "--url", "memory:", "--json").json["total"] == 0


def test_the_environment_names_the_store_unless_the_command_line_does(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.submit("a")
    monkeypatch.setenv("HEADRACE_URL", shell.url)
    assert shell.bare("stats", "--json").json["total"] == 1
    assert shell.bare("stats", "--url", "memory:", "--json").json["total"] == 0


def test_without_a_url_it_is_a_file_in_the_present_folder(shell: Shell, tmp_path: Path) -> None:
    assert shell.bare("submit", "a").code == 0
    assert (tmp_path / "headrace.db").exists()


def test_a_tenant_sees_and_changes_only_its_own_jobs(shell: Shell) -> None:
    ours = shell.submit("a", "--tenant", "acme")
    theirs = shell.submit("a", "--tenant", "other")
    assert [job["id"] for job in shell.ok("--tenant", "acme", "list", "--json").json["jobs"]] == [
        ours
    ]
    assert shell.ok("list", "--json").json["jobs"][0]["tenant"] == "other"
    foreign = shell("--tenant", "acme", "show", theirs)
    unknown = shell("--tenant", "acme", "show", "nothing")
    assert foreign.code == unknown.code == 3
    assert foreign.err.replace(theirs, "nothing") == unknown.err
    assert shell("cancel", theirs, "--tenant", "acme").code == 3
    assert shell.state(theirs) == "pending"


def test_an_empty_tenant_is_refused(shell: Shell) -> None:
    answer = shell("stats", "--tenant", "")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("headrace: the tenant is empty")


def test_json_errors_come_as_a_line_and_an_object(shell: Shell) -> None:
    for words in (("show", "nothing", "--json"), ("--json", "show", "nothing")):
        answer = shell(*words)
        assert (answer.code, answer.out) == (3, "")
        line, record = answer.err.splitlines()
        assert line == "headrace: job nothing was not found; nothing was changed"
        assert json.loads(record) == {
            "code": "JOB_NOT_FOUND",
            "message": "job nothing was not found; nothing was changed",
            "exit_code": 3,
        }


def test_json_is_recognised_even_when_the_words_do_not_parse(shell: Shell) -> None:
    answer = shell("list", "--json", "--nonsense")
    assert answer.code == 2
    assert json.loads(answer.err.splitlines()[1])["code"] == "USAGE"
    assert len(shell("submit", "a", "b", "--", "--json").err.splitlines()) == 1
