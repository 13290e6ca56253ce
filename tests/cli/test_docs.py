from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.cli.exits import Exit
from headrace.cli.records import EventRecord, JobRecord
from headrace.cli.settings import Command
from tests.cli.commands import every_command
from tests.cli.pages import File, steady, steps
from tests.cli.shell import Shell

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = DOCS / "reference" / "cli.md"
PAGES = (
    DOCS / "tutorial" / "first-jobs.md",
    DOCS / "howto" / "cancel-by-tag.md",
    DOCS / "howto" / "redrive-dead-letters.md",
    DOCS / "howto" / "why-is-my-job-not-running.md",
    DOCS / "howto" / "follow-events.md",
    DOCS / "howto" / "clean-up.md",
    DOCS / "howto" / "encrypt-payloads.md",
    DOCS / "howto" / "webhooks.md",
    DOCS / "howto" / "batches-and-hooks.md",
    DOCS / "howto" / "limit-a-queue.md",
    DOCS / "howto" / "run-on-a-schedule.md",
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_print_what_it_shows(
    shell: Shell, tmp_path: Path, page: Path
) -> None:
    code = 0
    commands = 0
    for step in steps(page):
        if isinstance(step, File):
            (tmp_path / step.name).write_text(step.content, "utf-8")
            continue
        commands += 1
        program, *words = shlex.split(step.line)
        match program:
            case "headrace":
                answer = shell.bare(*words)
                code, printed = answer.code, answer.out + answer.err
            case "python":
                done = subprocess.run(
                    [sys.executable, *words],
                    cwd=tmp_path,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                code, printed = done.returncode, done.stdout + done.stderr
            case "echo":
                printed = str(code)
            case _:
                raise AssertionError(step.line)
        assert steady(printed) == steady(step.printed), step.line
    assert commands > 1


@pytest.mark.parametrize(("name", "command"), list(every_command()))
def test_the_reference_has_every_command_and_option(name: str, command: Command) -> None:
    _, _, rest = REFERENCE.read_text("utf-8").partition(f"\n### {name}\n")
    section = rest.split("\n### ")[0].split("\n## ")[0]
    assert section, f"no section for {name}"
    for param in command.params:
        if param.expose_value and param.opts[0].startswith("--"):
            assert f"`{param.opts[0]}" in section, param.opts[0]


def test_the_reference_has_every_json_field_and_exit_code() -> None:
    text = REFERENCE.read_text("utf-8")
    for field in (*JobRecord.__struct_fields__, *EventRecord.__struct_fields__):
        assert f"`{field}`" in text, field
    for code in Exit:
        assert f"\n| {code.value} |" in text
