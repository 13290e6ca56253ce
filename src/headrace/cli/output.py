"""Where a command's answer goes: text for people, JSON for programs, never both on one stream."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
import msgspec
from rich.console import Console
from rich.text import Text

from headrace.cli.exits import PROGRAM, one_line
from headrace.cli.table import Column, lay_out
from headrace.model import State

_UNBOUNDED = 100_000
"""A pipe has no edge to wrap at: one line per job, whatever its length."""

_STYLES = {
    State.BLOCKED: "yellow",
    State.PENDING: "",
    State.RUNNING: "cyan",
    State.CANCELLING: "magenta",
    State.RETRYING: "yellow",
    State.LOST: "red",
    State.COMPLETED: "green",
    State.FAILED: "bold red",
    State.DEAD: "bold red",
    State.CANCELLED: "magenta",
    State.ABANDONED: "magenta",
}


class Output:
    """The standard output of one command. Colours only on a terminal."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        terminal = sys.stdout.isatty()
        self._console = Console(
            file=sys.stdout,
            markup=False,
            highlight=False,
            emoji=False,
            width=None if terminal else _UNBOUNDED,
        )

    @property
    def width(self) -> int:
        """How long a line may be."""
        return self._console.width

    def document(self, record: msgspec.Struct) -> None:
        """One JSON document, indented."""
        click.echo(msgspec.json.format(msgspec.json.encode(record), indent=2).decode())

    def line(self, record: msgspec.Struct) -> None:
        """One record of a stream: JSON on a line of its own, written out at once."""
        click.echo(msgspec.json.encode(record).decode())

    def text(self, *parts: Text | str | tuple[str, str]) -> None:
        """A line; long ones are left to the terminal to wrap, so that copying gives them whole."""
        self._console.print(Text.assemble(*parts), soft_wrap=True)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Text | str]]) -> None:
        for line in lay_out(columns, rows, self._console.width):
            self._console.print(line, soft_wrap=True)

    def fields(self, pairs: Sequence[tuple[str, Text | str | None]]) -> None:
        """Names and values below each other; what has no value is left out."""
        shown = [(name, value) for name, value in pairs if value is not None]
        width = max(len(name) for name, _ in shown)
        for name, value in shown:
            self.text((f"{name:<{width}}  ", "dim"), value)


def state_text(state: State) -> Text:
    return Text(state.value, _STYLES[state])


def state_style(state: State) -> str:
    return _STYLES[state]


def id_text(job_id: str) -> Text:
    return Text(job_id, "bold")


def note(message: str) -> None:
    """Something to know that is not the answer: on the error stream, so that pipes stay clean."""
    click.echo(f"{PROGRAM}: {one_line(message)}", err=True)
