from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest

from headrace import __version__
from headrace.cli.app import EXAMPLES, headrace, main
from headrace.cli.settings import Group
from tests.cli.commands import every_command, every_group
from tests.cli.shell import Shell
from tests.cli.test_docs import REFERENCE

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


@pytest.mark.parametrize("name", ["", *(name for name, _ in every_command())])
def test_h_is_short_for_help(shell: Shell, name: str) -> None:
    assert shell.bare(*name.split(), "-h") == shell.bare(*name.split(), "--help")


def test_the_version_is_also_an_option(shell: Shell) -> None:
    assert shell.bare("--version") == shell.bare("version")
    assert shell.bare("--version").out == f"headrace {__version__}\n"


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_each_shell_of_the_reference_gets_its_completion(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The script that the reference tells to load, and what it then asks for."""
    if name == "bash":  # click asks the bash at hand for its version
        monkeypatch.setattr("click.shell_completion.BashComplete._check_version", lambda *_: None)
    assert f"_HEADRACE_COMPLETE={name}_source headrace" in REFERENCE.read_text("utf-8")

    def asked(**variables: str) -> str:
        """What it prints when its shell asks; click ends the program by itself then."""
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)
        with pytest.raises(SystemExit) as end:
            main([])
        assert end.value.code in (0, None)
        return capsys.readouterr().out

    assert "headrace" in asked(_HEADRACE_COMPLETE=f"{name}_source")
    for typed, word, found in (
        ("headrace sche", "sche", "schedule"),
        ("headrace list --sta", "--sta", "--state"),
        ("headrace list --state dea", "dea", "dead"),
        ("headrace schedule re", "re", "resume"),
    ):
        place = word if name == "fish" else str(len(typed.split()) - 1)
        assert found in asked(
            _HEADRACE_COMPLETE=f"{name}_complete", COMP_WORDS=typed, COMP_CWORD=place
        )
