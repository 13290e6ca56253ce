from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.cli import progress
from headrace.cli.progress import Bar
from headrace.crypto import KeyRing, new_key
from tests.cli.shell import Shell

Prepare = Callable[[Shell, Path], tuple[str, ...]]


def _batch_file(shell: Shell, folder: Path) -> tuple[str, ...]:
    (folder / "jobs.jsonl").write_text('{"type": "a"}\n' * 3000)
    return ("submit", "--batch", "jobs.jsonl")


def _count(shell: Shell, folder: Path) -> tuple[str, ...]:
    return ("submit", "a", "--count", "1000")


def _cancel(shell: Shell, folder: Path) -> tuple[str, ...]:
    shell.submit("a", "--tag", "x")
    return ("cancel", "--tag", "x", "--yes")


def _redrive(shell: Shell, folder: Path) -> tuple[str, ...]:
    shell.end("dead", tags=["x"])
    return ("redrive", "--tag", "x")


def _dry_redrive(shell: Shell, folder: Path) -> tuple[str, ...]:
    return (*_redrive(shell, folder), "--dry-run")


def _delete(shell: Shell, folder: Path) -> tuple[str, ...]:
    shell.end("dead", tags=["x"])
    return ("delete", "--tag", "x", "--yes")


def _cleanup(shell: Shell, folder: Path) -> tuple[str, ...]:
    shell.end("completed")
    return ("cleanup", "--completed-older-than", "0s")


def _reencrypt(shell: Shell, folder: Path) -> tuple[str, ...]:
    for _ in range(2):
        shell.submit("a", "--count", "101")
    (folder / "keys.txt").write_text(f"{new_key('k1')}\n")
    assert KeyRing.from_file("keys.txt").primary == "k1"
    return ("reencrypt", "--keys", "keys.txt", "--seal-plain")


def _batch(shell: Shell, folder: Path) -> tuple[str, ...]:
    shell.end("completed", tags=["batch=b[red]"])
    return ("batch", "b[red]", "--wait")


def _trim(shell: Shell, folder: Path) -> tuple[str, ...]:
    shell.submit("a")
    return ("events", "trim", "--keep", "0s", "--without-readers")


LONG: dict[str, tuple[Prepare, str]] = {
    "submit --batch": (_batch_file, "reading, 3,000 jobs"),
    "submit --count": (_count, "storing 1,000 jobs"),
    "cancel": (_cancel, "cancelling"),
    "redrive": (_redrive, "redriving"),
    "redrive --dry-run": (_dry_redrive, "looking, 1 jobs"),
    "delete": (_delete, "deleting"),
    "cleanup": (_cleanup, "deleting, 1 jobs"),
    "events trim": (_trim, "trimming, 1 events"),
    "reencrypt": (_reencrypt, "re-encrypting, 200 of 202 jobs"),
    "batch --wait": (_batch, "batch b[red], 1 of 1 jobs"),
}


@pytest.fixture(params=LONG)
def long(request: pytest.FixtureRequest, shell: Shell, tmp_path: Path) -> tuple[list[str], str]:
    """The words of a long command, and what its bar says."""
    prepare, says = LONG[request.param]
    return list(prepare(shell, tmp_path)), says


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short the work."""
    start = Bar.__init__

    def begin(self: Bar, *told: str) -> None:
        start(self, *told)
        self.start()

    monkeypatch.setattr(Bar, "__init__", begin)


def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the error stream is a terminal that is wide enough."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)


@pytest.mark.usefixtures("at_once")
def test_a_pipe_hears_nothing_of_it(shell: Shell, long: tuple[list[str], str]) -> None:
    words, _ = long
    assert shell(*words).err == ""


@pytest.mark.usefixtures("at_once")
def test_with_json_a_terminal_hears_nothing_of_it(
    shell: Shell, long: tuple[list[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    watch(monkeypatch)
    words, _ = long
    answer = shell(*words, "--json")
    assert answer.err == ""
    assert answer.json


@pytest.mark.usefixtures("at_once")
def test_a_terminal_sees_how_far_it_is(
    shell: Shell, long: tuple[list[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    watch(monkeypatch)
    words, says = long
    answer = shell(*words)
    assert says in answer.err
    assert answer.err.endswith("\r\x1b[1A\x1b[2K")  # wiped out again
    assert "\x1b" not in answer.out


def test_what_is_done_at_once_shows_no_bar(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch)
    monkeypatch.setattr(progress, "QUIET_SECONDS", 60.0)
    assert shell("submit", "a", "--count", "3").err == ""


def test_what_takes_long_shows_one_by_itself() -> None:
    """While the command waits for a store that says nothing meanwhile."""
    program = """
import asyncio, sys
from headrace.cli.progress import progress

async def main():
    with progress("working"):
        await asyncio.sleep(1.0)
    print("done")

sys.stderr.isatty = lambda: True
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"TERM": "xterm", "PATH": ""},
    )
    assert done.stdout == "done\n"
    assert "working" in done.stderr


def test_a_bar_that_was_told_how_far_it_is_can_move_by_itself_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watch(monkeypatch)

    def drawn(*fractions: float | None) -> str:
        bar = Bar("working")
        bar.start()
        for fraction in fractions:
            bar.say("working", fraction)
        capsys.readouterr()
        bar.stop()
        return capsys.readouterr().err.partition("working")[2]

    # What has no end is drawn in a wave of many colours, else in one for what is done and one for the rest.
    assert drawn(0.5).count("\x1b[") < drawn(0.5, None).count("\x1b[")
