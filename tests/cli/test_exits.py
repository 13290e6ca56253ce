from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from headrace import errors
from headrace.cli.exits import Exit, exit_of
from tests.cli.shell import Shell

READING = (
    ("show", "a"),
    ("list",),
    ("stats",),
    ("explain", "a"),
    ("events",),
    ("cancel", "a"),
    ("redrive", "a"),
    ("delete", "a"),
    ("cleanup",),
    ("pause", "mail"),
    ("resume", "mail"),
    ("schedule", "list"),
    ("schedule", "add", "s", "--every", "1h", "--type", "t"),
    ("maintenance", "--once"),
)


@pytest.mark.parametrize("words", READING, ids=lambda words: words[0])
def test_a_missing_file_is_named_and_not_created(
    shell: Shell, tmp_path: Path, words: tuple[str, ...]
) -> None:
    missing = tmp_path / "typo.db"
    answer = shell.bare("--url", f"sqlite:///{missing}", *words)
    assert (answer.code, answer.out) == (4, "")
    assert answer.err.startswith("headrace: ")
    assert str(missing) in answer.err
    assert "create it with headrace submit or headrace migrate" in answer.err
    assert answer.err.count("\n") == 1
    assert not missing.exists()


@pytest.mark.parametrize("words", [("list",), ("submit", "a"), ("migrate",)])
def test_a_foreign_file_is_refused_and_left_as_it_is(
    shell: Shell, tmp_path: Path, words: tuple[str, ...]
) -> None:
    foreign = tmp_path / "notes.db"
    foreign.write_text("dear diary, " * 100)
    answer = shell.bare("--url", f"sqlite:///{foreign}", *words)
    assert answer.code == 4
    assert answer.err.startswith(f"headrace: {foreign} is not a SQLite database")
    assert foreign.read_text() == "dear diary, " * 100


def test_a_newer_schema_is_refused(shell: Shell, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        connection.execute("PRAGMA user_version = 999")
    answer = shell("list", "--json")
    assert answer.code == 4
    assert '"code":"SCHEMA_TOO_NEW"' in answer.err


def test_a_folder_that_is_missing_is_named(shell: Shell) -> None:
    answer = shell.bare("submit", "a", "--url", "sqlite:///no/such/jobs.db")
    assert answer.code == 4
    assert "its folder does not exist" in answer.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("frobnicate",), "No such command 'frobnicate'"),
        (("list", "--nonsense"), "No such option"),
        (("show",), "Missing argument 'ID'"),
        (("show", ""), "a job id is empty"),
        (("list", "--limit", "-1"), "limit is -1"),
        (("list", "--state", "happy"), "'happy' is not one of"),
        (("list", "--cursor", "rubbish"), "'rubbish' is not a cursor"),
        (("events", "--after", "rubbish"), "rubbish"),
        (("cleanup", "--completed-older-than", "soon"), "'soon' is not a duration"),
        (("cancel",), "name job ids, --tag or a filter"),
        (("redrive",), "name job ids, --tag or a filter"),
        (("delete",), "name job ids, --tag or a filter"),
        (("pause", " "), "the queue is empty"),
        (("events", "--timeout", "5s"), "--timeout is for --follow"),
        (("list", "--url", "carrier-pigeon:"), "no store answers to"),
        (("list", "--url", "sqlite:///"), "names no file"),
        (("list", "--created-from", "2026-01-01"), "has no time zone"),
    ],
)
def test_usage_errors_are_one_line_and_exit_2(
    shell: Shell, words: tuple[str, ...], told: str
) -> None:
    answer = shell(*words)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("headrace: ")
    assert told in answer.err
    assert answer.err.count("\n") == 1
    assert "Traceback" not in answer.err


def test_usage_errors_come_before_the_store_is_touched(shell: Shell, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    for words in (("submit",), ("submit", "a", "--count", "2", "--id", "x"), ("cancel",)):
        assert shell.bare(*words, "--url", url).code == 2
    (tmp_path / "bad.jsonl").write_text("{")
    assert shell.bare("submit", "--batch", "bad.jsonl", "--url", url).code == 2
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.JobNotFound("a"), Exit.NOT_FOUND),
        (errors.DependencyNotFound("x"), Exit.NOT_FOUND),
        (errors.ScheduleNotFound("x"), Exit.NOT_FOUND),
        (errors.DuplicateJob("x"), Exit.REFUSED),
        (errors.DuplicateSchedule("x"), Exit.REFUSED),
        (errors.InvalidSchedule("x"), Exit.USAGE),
        (errors.NotTerminal("x", job_id="a"), Exit.REFUSED),
        (errors.Contention("x"), Exit.REFUSED),
        (errors.InvalidCursor("x"), Exit.USAGE),
        (errors.PayloadTooLarge("x"), Exit.USAGE),
        (errors.StoreUnavailable("x"), Exit.STORE),
        (errors.StoreCorrupt("x"), Exit.STORE),
        (errors.SchemaTooOld("x"), Exit.STORE),
        (errors.InvalidBatch("x", index=0, cause=errors.DuplicateJob("x")), Exit.REFUSED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_kind_of_error_has_its_exit_code(error: errors.HeadraceError, code: Exit) -> None:
    assert exit_of(error) is code


def _start(shell: Shell, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "--url", shell.url, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Tests that run in the background inherit an ignored interrupt; a user at a terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - no threads
    )


def test_an_interrupt_ends_quietly_with_130(shell: Shell) -> None:
    shell.submit("a")
    with _start(shell, "events", "--follow", "--json") as process:
        assert process.stdout is not None
        assert '"kind":"enqueued"' in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out, err.strip()) == (130, "", "")


def test_a_reader_that_goes_away_is_no_reason_for_a_traceback(shell: Shell) -> None:
    shell.ok("submit", "a", "--count", "2000", "-q")
    with _start(shell, "events", "--limit", "2000") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode != 0
