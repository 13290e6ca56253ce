from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from headrace.cli import batch
from tests.cli.shell import Answer, Shell


def _submit(shell: Shell, tmp_path: Path, *lines: str, words: tuple[str, ...] = ()) -> Answer:
    (tmp_path / "jobs.jsonl").write_text("\n".join(lines) + "\n")
    return shell("submit", "--batch", "jobs.jsonl", *words)


def test_every_line_becomes_a_job_in_order(shell: Shell, tmp_path: Path) -> None:
    answer = _submit(
        shell,
        tmp_path,
        '{"type": "extract", "id": "e", "priority": "high", "tags": {"day": 7}}',
        "",
        '{"type": "load", "id": "l", "after": ["e"], "payload": {"n": 1}, "queue": "etl"}',
        '{"type": "mail", "id": "m", "after": [{"job_id": "l", "kind": "after_any"}]}',
        '{"type": "late", "id": "t", "run_at": "2030-01-01T00:00:00Z", "max_attempts": null}',
        words=("--json",),
    )
    assert answer.code == 0
    assert answer.json == {
        "created": 4,
        "existing": 0,
        "jobs": [{"id": name, "created": True} for name in "elmt"],
    }
    listed = shell.ok("list", "--oldest-first", "--json").json["jobs"]
    assert [job["id"] for job in listed] == ["e", "l", "m", "t"]
    assert [job["state"] for job in listed] == ["pending", "blocked", "blocked", "pending"]
    assert [job["priority"] for job in listed] == [1, 1, 1, 2]
    assert listed[0]["tags"] == ["day=7"]
    assert listed[1]["payload"] == {"n": 1}
    assert listed[3]["max_attempts"] is None


def test_standard_input_is_a_file_too(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO(b'{"type": "a"}\n{"type": "b"}')
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=content, isatty=lambda: False))
    answer = shell.ok("submit", "--batch", "-")
    assert answer.out.startswith("submitted 2 jobs\n")


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("{", 2, "jobs.jsonl line 3: Input data was truncated"),
        ("[]", 2, "jobs.jsonl line 3: Expected `object`, got `array`"),
        ('{"queue": "q"}', 2, "jobs.jsonl line 3: Object missing required field `type`"),
        ('{"type": "a", "tpye": 1}', 2, "jobs.jsonl line 3: Object contains unknown field `tpye`"),
        ('{"type": ""}', 2, "jobs.jsonl line 3: the type is empty"),
        ('{"type": "a", "priority": "urgent"}', 2, "line 3: 'urgent' is not a priority"),
        ('{"type": "a", "priority": 9}', 2, "line 3: '9' is not a priority"),
        ('{"type": "a", "run_at": "2030-01-01T00:00:00"}', 2, "line 3: run_at"),
        ('{"type": "a", "delay_seconds": -1}', 2, "line 3: delay_seconds is -1"),
        ('{"type": "a", "id": "first"}', 1, "line 3: id first stands twice in the batch"),
        ('{"type": "a", "id": "taken"}', 1, "line 3: a job with id taken is stored already"),
        ('{"type": "a", "after": ["nobody"]}', 3, "line 3: job "),
        ('{"type": "a", "id": "x", "after": ["x"]}', 2, "x"),
    ],
)
def test_one_bad_line_is_named_and_no_job_is_stored(
    shell: Shell, tmp_path: Path, line: str, code: int, told: str
) -> None:
    shell.submit("a", "--id", "taken")
    answer = _submit(shell, tmp_path, '{"type": "a", "id": "first"}', "", line, '{"type": "z"}')
    assert (answer.code, answer.out) == (code, ""), answer
    assert told in answer.err
    assert answer.err.count("\n") == 1
    assert shell.ok("stats", "--json").json["total"] == 1


def test_the_json_error_has_a_code(shell: Shell, tmp_path: Path) -> None:
    answer = _submit(shell, tmp_path, "{", words=("--json",))
    assert json.loads(answer.err.splitlines()[1])["code"] == "INVALID_BATCH"


def test_a_single_bad_job_is_located_as_well(shell: Shell, tmp_path: Path) -> None:
    answer = _submit(shell, tmp_path, "", '{"type": "a", "key": ""}')
    assert answer.code == 2
    assert "jobs.jsonl line 2: the idempotency key is empty" in answer.err


def test_a_file_without_jobs_and_a_missing_file_are_refused(shell: Shell, tmp_path: Path) -> None:
    assert "jobs.jsonl has no jobs" in _submit(shell, tmp_path, "").err
    answer = shell("submit", "--batch", "missing.jsonl")
    assert answer.code == 2
    assert "missing.jsonl cannot be read: No such file" in answer.err


@pytest.mark.parametrize("words", [("a",), ("--queue", "q"), ("--count", "2")])
def test_options_beside_a_batch_are_refused(
    shell: Shell, tmp_path: Path, words: tuple[str, ...]
) -> None:
    answer = _submit(shell, tmp_path, '{"type": "a"}', words=words)
    assert answer.code == 2
    assert "--batch takes all of its jobs from the file: remove" in answer.err
    assert shell.ok("stats", "--json").json["total"] == 0


def test_a_file_with_too_many_jobs_says_so(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "BATCH_JOBS_MAX", 2)
    answer = _submit(shell, tmp_path, *['{"type": "a"}'] * 3)
    assert answer.code == 2
    assert "more than 2 jobs" in answer.err
