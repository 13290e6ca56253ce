from __future__ import annotations

import base64
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace import JobManager
from tests.cli.shell import Shell

OLD = "2025-04:" + base64.b64encode(b"o" * 32).decode()
NEW = "2026-11:" + base64.b64encode(b"n" * 32).decode()
SECRET = "the-secret-word"


@pytest.fixture
def rings(tmp_path: Path) -> dict[str, str]:
    """Files of rings: the old key, the new one, and both with the new one first."""
    files = {"old": OLD, "new": NEW, "both": f"{NEW}\n{OLD}\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in files}


def submit(shell: Shell, ring: str, *words: str) -> str:
    return shell.submit("a", "--payload", f'"{SECRET}"', "--keys", ring, *words)


def test_with_the_key_a_job_is_shown_and_without_it_only_that_it_is_encrypted(
    shell: Shell, rings: dict[str, str]
) -> None:
    job = submit(shell, rings["old"])
    assert shell.ok("cancel", job, "--reason", SECRET, "--keys", rings["old"]).code == 0
    assert f'payload     "{SECRET}"' in shell.ok("show", job, "--keys", rings["old"]).out
    for words in ((), ("--keys", rings["new"])):
        out = shell.ok("show", job, *words).out
        assert "payload     encrypted with key 2025-04\n" in out
        assert "last error  encrypted with key 2025-04 (cancelled)\n" in out
        record = shell.ok("show", job, "--json", *words).json
        assert record["payload"] == {"encrypted": True, "key": "2025-04"}
        assert record["failure"]["message"] == "encrypted with key 2025-04"
        assert record["result"] is None
        for command in (("list",), ("list", "--json"), ("events",), ("explain", job, "--json")):
            told = shell.ok(*command, *words).out
            assert SECRET not in told
            assert "sealed" not in told


def test_a_damaged_job_is_shown_as_such(shell: Shell, rings: dict[str, str]) -> None:
    job, other = submit(shell, rings["old"]), submit(shell, rings["old"])

    async def move(jobs: JobManager) -> None:
        from headrace.stores.base import Rewrite

        rows = await jobs.store.get([job, other])
        moved = Rewrite(job_id=job, version=1, payload_json=rows[other].payload_json)
        assert await jobs.store.rewrite([moved]) == [True]

    shell.manage(move)
    out = shell.ok("show", job, "--keys", rings["old"]).out
    assert "encrypted with key 2025-04; it cannot be decrypted: it was changed" in out
    record = shell.ok("show", job, "--json", "--keys", rings["old"]).json
    assert record["payload"]["damaged"].startswith("it was changed, or moved")
    assert shell.ok("cancel", job).code == 0
    refused = shell("redrive", job, "--keys", rings["old"])
    assert (refused.code, refused.out) == (1, "")
    assert "nothing was submitted" in refused.err


def test_the_environment_holds_the_ring_unless_the_command_line_names_one(
    shell: Shell, rings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submit(shell, rings["old"])
    for value in (OLD, f"@{rings['old']}"):
        monkeypatch.setenv("HEADRACE_KEYS", value)
        assert shell.ok("show", job, "--json").json["payload"] == SECRET
    record = shell.ok("--keys", rings["new"], "show", job, "--json").json
    assert record["payload"]["encrypted"] is True


@pytest.mark.parametrize("text", ["", "nonsense", OLD + OLD, "a:AAAA"])
def test_a_bad_ring_is_a_usage_error_that_tells_no_key(
    shell: Shell, tmp_path: Path, text: str
) -> None:
    (tmp_path / "ring").write_text(text)
    for words in (("stats",), ("keys", "list")):
        answer = shell(*words, "--keys", "ring")
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith("headrace: ")
        assert OLD[10:30] not in answer.err
    assert shell("stats", "--keys", "nowhere").code == 2


def test_a_new_key_is_printed_and_makes_a_ring(shell: Shell, tmp_path: Path) -> None:
    line = shell.ok("keys", "new", "--id", "mine").out
    assert line.startswith("mine:")
    assert shell.ok("keys", "new", "--id", "mine").out != line
    (tmp_path / "ring").write_text(line + shell.ok("keys", "new", "--json").json["line"])
    listed = shell.ok("keys", "list", "--keys", "ring")
    assert listed.out.splitlines()[0] == "mine (primary)"
    names = shell.ok("keys", "list", "--keys", "ring", "--json").json
    assert names["primary"] == "mine"
    assert len(names["keys"]) == 2
    assert line.partition(":")[2].strip() not in listed.out
    assert shell("keys", "list").code == 2
    assert shell("keys", "new", "--id", "no spaces").code == 2


def test_reencrypt_says_what_is_left_and_then_the_old_key_can_go(
    shell: Shell, rings: dict[str, str]
) -> None:
    held, waiting = submit(shell, rings["old"]), submit(shell, rings["old"], "--delay", "1h")
    plain = shell.submit("a", "--delay", "1h")
    token = shell.run(held)
    assert shell("reencrypt").code == 2
    first = shell("reencrypt", "--keys", rings["both"])
    assert first.code == 1
    assert first.out.splitlines() == [
        "1 job re-encrypted, with key 2026-11; 1 left",
        "  1 held by a worker or just changed: run this again later",
    ]
    assert first.err == "headrace: 1 job in the clear: --seal-plain encrypts them, too\n"

    async def release(jobs: JobManager) -> None:
        await jobs.release(held, token)

    shell.manage(release)
    second = shell.ok("reencrypt", "--keys", rings["both"], "--seal-plain", "--json").json
    assert second == {
        "primary": "2026-11", "looked_at": 3, "done": 2, "left": 0,
        "skipped": 0, "unreadable": 0, "plain": 0,
    }  # fmt: skip
    third = shell.ok("reencrypt", "--keys", rings["new"])
    assert third.out.splitlines() == [
        "0 jobs re-encrypted, with key 2026-11; 0 left",
        "no other key is needed any more",
    ]
    for job, payload in ((held, SECRET), (waiting, SECRET), (plain, None)):
        record = shell.ok("show", job, "--json", "--keys", rings["new"]).json
        assert record["payload"] == payload
    assert shell.ok("show", plain, "--json").json["payload"]["encrypted"] is True


def test_reencrypt_without_the_old_key_says_so(shell: Shell, rings: dict[str, str]) -> None:
    submit(shell, rings["old"])
    answer = shell("reencrypt", "--keys", rings["new"])
    assert answer.code == 1
    assert "  1 under a key that is not in the ring, or damaged\n" in answer.out


def test_reencrypt_walks_every_page(shell: Shell, rings: dict[str, str]) -> None:
    shell.ok("submit", "a", "--count", "250", "-q", "--keys", rings["old"])
    done = shell.ok("reencrypt", "--keys", rings["both"], "--json").json
    assert (done["looked_at"], done["done"], done["left"]) == (250, 250, 0)


APP = """
from headrace import Headrace

app = Headrace()

@app.task
def greet(name: str) -> str:
    return f"hello {name}"
"""


@pytest.fixture
def work(shell: Shell, tmp_path: Path) -> Callable[..., None]:
    """Run a worker until a job has an event of this kind."""
    (tmp_path / "greeting.py").write_text(APP)

    def run(job: str, kind: str, *words: str) -> None:
        command = [
            sys.executable,
            "-m",
            "headrace.cli",
            "worker",
            "greeting:app",
            "--url",
            shell.url,
        ]
        worker = subprocess.Popen([*command, *words], cwd=tmp_path, stderr=subprocess.DEVNULL)
        try:
            shell.ok("events", "--job", job, "--follow", "--timeout", "30s", "--limit", "3")
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.wait(30)
        lines = shell.ok("events", "--job", job, "--json").json_lines
        assert [line["kind"] for line in lines] == ["enqueued", "leased", kind]

    return run


def test_a_worker_with_the_ring_runs_what_one_without_it_leaves(
    shell: Shell, rings: dict[str, str], work: Callable[..., None]
) -> None:
    words = ("greet", "--payload", '{"name": "Ada"}', "--keys", rings["old"])
    job = shell.submit(*words)
    work(job, "snoozed")
    assert shell.ok("cancel", job).code == 0
    job = shell.submit(*words)
    work(job, "completed", "--keys", rings["old"])
    shown = shell.ok("show", job, "--json", "--keys", rings["old"]).json
    assert shown["result"] == "hello Ada"
    assert shell.ok("show", job, "--json").json["result"] == {"encrypted": True, "key": "2025-04"}
