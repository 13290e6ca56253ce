from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest

from headrace.cli.app import EXAMPLES, headrace
from headrace.cli.settings import Group
from tests.cli.commands import every_command, every_group
from tests.cli.shell import Shell

COMMANDS = (
    "submit",
    "show",
    "list",
    "stats",
    "explain",
    "events",
    "cancel",
    "redrive",
    "delete",
    "cleanup",
    "pause",
    "resume",
    "schedule",
    "maintenance",
    "migrate",
    "version",
)


def test_the_root_help_names_every_command_the_default_store_and_the_variable(shell: Shell) -> None:
    answer = shell.bare("--help")
    assert answer.code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in answer.out
    assert "sqlite:///headrace.db" in answer.out
    assert "HEADRACE_URL" in answer.out
    assert "Examples:" in answer.out
    assert shell.bare().out == answer.out


@pytest.mark.parametrize("group", every_group())
def test_a_group_alone_shows_its_help(shell: Shell, group: Group) -> None:
    answer = shell.bare(str(group.name))
    assert answer == shell.bare(str(group.name), "--help")
    for name in group.commands:
        assert f"\n  {name} " in answer.out


@pytest.mark.parametrize("name", [name for name, _ in every_command()])
def test_each_command_has_help_with_an_example_and_the_shared_options(
    shell: Shell, name: str
) -> None:
    answer = shell.bare(*name.split(), "--help")
    assert answer.code == 0
    assert f"Usage: headrace {name}" in answer.out
    assert "Example" in answer.out
    assert f"  headrace {name}" in answer.out
    for option in ("--url", "--tenant", "--json"):
        assert option in answer.out


def _examples() -> list[str]:
    found = [*EXAMPLES, *(example for group in every_group() for example in group.examples)]
    for _, command in every_command():
        found += command.examples
    return found


@pytest.mark.parametrize("example", _examples())
def test_each_example_is_a_command_line_that_parses(
    shell: Shell, tmp_path: Path, example: str
) -> None:
    (tmp_path / "jobs.jsonl").write_text('{"type": "a"}\n')
    program, *words = shlex.split(example)
    assert program == "headrace"
    group: click.Group = headrace
    context = headrace.make_context("headrace", words)
    while True:
        name, command, rest = group.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        assert command is not None
        context = command.make_context(name, rest, parent=context)
        if not isinstance(command, click.Group) or not (context._protected_args or context.args):
            break
        group = command
    assert context.command.name in words
