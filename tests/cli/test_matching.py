"""Redriving, cancelling and deleting by what jobs are like."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import JobManager, JobSpec, KeyRing, PermanentError
from headrace.crypto import new_key
from headrace.errors import StoreUnavailable
from headrace.manager import bulk, retention
from headrace.manager.submission import Submitted
from headrace.model import State
from tests.cli.shell import Shell


def fill(shell: Shell) -> None:
    """Six jobs that failed, of two kinds, one that completed, and two that wait."""

    async def work(jobs: JobManager) -> None:
        specs = [JobSpec(type="send", queue="mail", payload=n, tags=["spring"]) for n in range(6)]
        await jobs.submit_many([*specs, JobSpec(type="send", queue="mail", payload=6)])
        for job in await jobs.claim("w", limit=100):
            if job.payload < 4:
                error = PermanentError(f"busy: try again in {job.payload} s", code="E503")
                await jobs.fail(job.id, job.token, error)
            elif job.payload < 6:
                await jobs.fail(job.id, job.token, PermanentError("no such user", code="E404"))
            else:
                await jobs.complete(job.id, job.token)
        await jobs.submit_many(
            [JobSpec(type="send", queue="web"), JobSpec(type="load", queue="web")]
        )

    shell.manage(work)


def test_a_dry_run_counts_by_error_and_the_run_does_each_once(shell: Shell) -> None:
    fill(shell)
    words = ("redrive", "--queue", "mail", "--since", "2h", "--state", "failed")
    assert shell.ok(*words, "--dry-run").out.splitlines() == [
        "6 jobs would be redriven",
        "JOBS  QUEUE  TYPE  STATE   CATEGORY   CODE  MESSAGE",
        "   4  mail   send  failed  permanent  E503  busy: try again in <n> s",
        "   2  mail   send  failed  permanent  E404  no such user",
    ]
    told = shell.ok(*words, "--error", "NO SUCH", "--dry-run", "--json").json
    (group,) = told.pop("groups")
    assert told == {"dry_run": True, "done": 2, "left": {}}
    assert (group["jobs"], group["code"], shell.state(group["example"])) == (2, "E404", "failed")
    assert shell.ok("stats", "--json").json["states"]["pending"] == 2
    done = shell.ok(*words, "--code", "E503", "--yes")
    assert done.out.splitlines()[0] == "4 jobs redriven"
    again = shell.ok(*words, "--yes")
    assert again.out.splitlines()[0] == "2 jobs redriven; left as they were: 4 redriven before"
    assert shell.ok("stats", "--json").json["states"]["pending"] == 8


def test_cancel_what_waits_on_a_queue_and_delete_what_ended(shell: Shell) -> None:
    fill(shell)
    assert "2 jobs would be cancelled" in shell.ok("cancel", "--queue", "web", "--dry-run").out
    assert shell.ok("cancel", "--queue", "web", "--type", "load", "--yes").out.splitlines() == [
        "1 job cancelled, or asked to stop",
        "JOBS  QUEUE  TYPE  STATE",
        "   1  web    load  pending",
    ]
    assert shell.ok("cancel", "--queue", "web", "--older-than", "1h", "--yes").out.startswith(
        "0 jobs"
    )
    told = shell.ok("delete", "--state", "completed", "--queue", "mail", "--yes", "--json").json
    assert (told["done"], told["groups"][0]["code"]) == (1, None)
    assert (
        shell.ok("delete", "--queue", "mail", "--tag", "summer", "--yes").out == "0 jobs deleted\n"
    )
    assert shell.ok("delete", "--queue", "mail", "--tag", "spring", "--yes").out.startswith(
        "6 jobs"
    )
    assert shell.ok("stats", "--json").json["total"] == 2


def test_what_is_not_clear_or_not_confirmed_changes_nothing(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(shell)
    for words, message in (
        (("redrive", "some-id", "--state", "failed"), "ids or filters, not both"),
        (("redrive", "--state", "completed"), "'completed' is not one of"),
        (("cancel", "--state", "dead"), "'dead' is not one of"),
        (("delete", "--older-than", "soon"), "is not a duration"),
        (("redrive", "--since", "soon"), "is not a time"),
        (("delete",), "none would mean every job"),
    ):
        answer = shell(*words)
        assert answer.code == 2, words
        assert message in answer.err, words
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    for words in (("redrive", "--queue", "mail"), ("cancel", "--queue", "web")):
        answer = shell(*words)
        assert (answer.code, answer.err) == (1, "headrace: nothing was changed\n")
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    for verb in ("redrive", "cancel", "delete"):
        answer = shell(verb, "--queue", "mail")
        assert answer.code == 2
        assert "to act by a filter give --yes" in answer.err
    assert shell.ok("stats", "--json").json["states"]["pending"] == 2


def test_one_that_is_stopped_says_how_far_it_came(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(shell)
    right = retention.run_again
    calls: list[int] = []

    async def full_at_the_second(*given: Any, **more: Any) -> Submitted:
        calls.append(1)
        if len(calls) > 1:
            raise StoreUnavailable("the store does not answer; nothing was stored")
        return await right(*given, **more)

    monkeypatch.setattr(bulk, "STEP_JOBS", 4)
    monkeypatch.setattr(retention, "run_again", full_at_the_second)
    answer = shell("redrive", "--state", "failed", "--yes")
    assert answer.code == 4
    assert answer.err.splitlines() == [
        "headrace: 4 jobs redriven before this; run it again to go on",
        "headrace: the store does not answer; nothing was stored",
    ]
    monkeypatch.setattr(retention, "run_again", right)
    assert (
        "2 jobs redriven; left as they were: 4 redriven"
        in shell.ok("redrive", "--state", "failed", "--yes").out
    )


def test_what_is_encrypted_needs_its_key(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = new_key("k1")

    async def work(jobs: JobManager) -> None:
        from headrace import connect

        async with await connect(shell.url, keys=KeyRing.parse(ring)) as sealed:
            await sealed.submit(JobSpec(type="send", payload={"card": 1}))
            (job,) = await sealed.claim("w")
            await sealed.fail(job.id, job.token, PermanentError("card 1 refused"))

    shell.manage(work)
    blind = shell("redrive", "--state", "failed", "--yes")
    assert (blind.code, blind.out) == (1, "0 jobs redriven; left as they were: 1 encrypted\n")
    assert shell("redrive", "--error", "refused", "--dry-run").code == 1
    assert "(encrypted)" in shell.ok("delete", "--state", "failed", "--dry-run").out
    monkeypatch.setenv("HEADRACE_KEYS", ring)
    assert "card <n> refused" in shell.ok("redrive", "--error", "refused", "--yes").out
    assert State.PENDING in shell.ok("list", "--state", "pending").out
