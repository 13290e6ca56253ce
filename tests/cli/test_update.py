from __future__ import annotations

import pytest

from tests.cli.shell import Shell


def test_what_is_given_is_changed_and_the_rest_stays(shell: Shell) -> None:
    job = shell.submit("mail", "--tag", "team=ops", "--tag", "kept", "--queue", "mail")
    answer = shell.ok(
        "update", job, "--priority", "high", "--tag", "team=billing", "--untag", "team=ops"
    )
    assert answer.out == f"updated {job} (priority high, tags kept, team=billing, pending)\n"
    url = ("--callback-url", "https://example.org/x", "--correlation-id", "c-1")
    record = shell.ok("update", job, *url, "--json").json
    assert record["updated"] is True
    assert (record["priority"], record["tags"]) == (1, ["kept", "team=billing"])
    assert (record["callback_url"], record["correlation_id"]) == ("https://example.org/x", "c-1")
    gone = shell.ok("update", job, "--no-callback-url", "--no-correlation-id", "--json").json
    assert (gone["callback_url"], gone["correlation_id"], gone["queue"]) == (None, None, "mail")
    events = shell.ok("events", "--job", job, "--json").json_lines
    assert [event["kind"] for event in events] == ["enqueued", "updated", "updated", "updated"]
    assert events[1]["detail"]["was"] == {"priority": 2, "tags": ["kept", "team=ops"]}


def test_what_is_so_already_is_said_to_be(shell: Shell) -> None:
    job = shell.submit("mail")
    answer = shell.ok("update", job, "--priority", "normal")
    assert answer.out.startswith(
        f"not updated, it was so already: {job} (priority normal, tags none"
    )
    assert shell.ok("update", job, "--untag", "nobody", "--json").json["updated"] is False


def test_ended_and_unknown_jobs(shell: Shell) -> None:
    done = shell.end("completed")
    ended = shell("update", done, "--priority", "low")
    assert (ended.code, ended.err) == (
        1,
        f"headrace: job {done} is completed already; update was refused\n",
    )
    assert shell("update", "nobody", "--priority", "low").code == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "say what to change"),
        (("--priority", "soon"), "not a priority"),
        (("--callback-url", "https://a.example", "--no-callback-url"), "not both"),
        (("--correlation-id", "c", "--no-correlation-id"), "not both"),
    ],
)
def test_usage(shell: Shell, words: tuple[str, ...], says: str) -> None:
    answer = shell("update", shell.submit("mail"), *words)
    assert answer.code == 2
    assert says in answer.err
