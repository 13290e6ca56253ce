from __future__ import annotations

from pathlib import Path

import pytest

from headrace.cli.exits import Exit
from headrace.cli.settings import Command
from headrace.event_record import EventRecord
from headrace.job_record import JobRecord
from tests.cli.commands import every_command
from tests.cli.pages import Typed, steps
from tests.cli.reader import Reader
from tests.cli.shell import Shell

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = DOCS / "reference" / "cli.md"
PAGES = (
    DOCS / "tutorial" / "first-jobs.md",
    DOCS / "tutorial" / "first-application.md",
    DOCS / "howto" / "workflows.md",
    DOCS / "howto" / "cancel-by-tag.md",
    DOCS / "howto" / "act-on-many.md",
    DOCS / "howto" / "change-a-job.md",
    DOCS / "howto" / "redrive-dead-letters.md",
    DOCS / "howto" / "why-is-my-job-not-running.md",
    DOCS / "howto" / "follow-events.md",
    DOCS / "howto" / "clean-up.md",
    DOCS / "howto" / "trim-events.md",
    DOCS / "howto" / "encrypt-payloads.md",
    DOCS / "howto" / "webhooks.md",
    DOCS / "howto" / "batches-and-hooks.md",
    DOCS / "howto" / "limit-a-queue.md",
    DOCS / "howto" / "run-on-a-schedule.md",
    DOCS / "howto" / "run-workers.md",
    DOCS / "howto" / "test-your-tasks.md",
    DOCS / "howto" / "observe.md",
    DOCS / "howto" / "change-arguments.md",
    DOCS / "reference" / "application.md",
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_print_what_it_shows(
    shell: Shell, tmp_path: Path, page: Path
) -> None:
    commands = 0
    with Reader(shell, tmp_path) as reader:
        for step in steps(page):
            reader.follow(step)
            commands += isinstance(step, Typed)
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
