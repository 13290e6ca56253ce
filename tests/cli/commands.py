"""Every command of the command line, those in groups included."""

from __future__ import annotations

from collections.abc import Iterator

import click

from headrace.cli.app import headrace
from headrace.cli.settings import Command, CommandWithMore, Group


def every_command(
    group: click.Group = headrace, before: tuple[str, ...] = ()
) -> Iterator[tuple[str, Command]]:
    """Each with the words that call it."""
    for name, command in group.commands.items():
        words = (*before, name)
        if isinstance(command, Group):
            yield from every_command(command, words)
        else:
            assert isinstance(command, Command), words
            yield " ".join(words), command
            if isinstance(command, CommandWithMore):
                yield from every_command(command, words)


def every_group() -> list[Group]:
    return [command for command in headrace.commands.values() if isinstance(command, Group)]
