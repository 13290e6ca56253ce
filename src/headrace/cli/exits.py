"""How a command ends: its exit code, and the line that says what went wrong."""

from __future__ import annotations

import enum

import click
import msgspec

from headrace.address import scrubbed
from headrace.errors import (
    BatchNotFound,
    BulkActNotFound,
    Contention,
    DependencyNotFound,
    DuplicateJob,
    DuplicateSchedule,
    FleetNotFound,
    HeadraceError,
    InvalidBatch,
    InvalidInput,
    JobNotFound,
    LogTrimmed,
    ScheduleNotFound,
    StoreError,
)

PROGRAM = "headrace"


class Exit(enum.IntEnum):
    """Documented in docs/reference/cli.md; scripts rely on them."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    STORE = 4
    INTERRUPTED = 130


class Ended(Exception):
    """A command that ends with a message and an exit code of its own."""

    def __init__(self, exit_code: Exit, code: str, message: str) -> None:
        super().__init__(message)
        self.failure = Failure(code=code, message=message, exit_code=exit_code)


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints to the error stream."""

    code: str
    message: str
    exit_code: Exit


def failure_of(error: HeadraceError | click.ClickException | Ended) -> Failure:
    match error:
        case Ended():
            return error.failure
        case HeadraceError():
            return Failure(code=error.code, message=error.message, exit_code=exit_of(error))
        case _:
            return Failure(code="USAGE", message=_usage_line(error), exit_code=Exit.USAGE)


def exit_of(error: HeadraceError) -> Exit:
    match error:
        case InvalidBatch():
            return exit_of(error.cause)
        case (
            JobNotFound()
            | BatchNotFound()
            | DependencyNotFound()
            | ScheduleNotFound()
            | BulkActNotFound()
            | FleetNotFound()
        ):
            return Exit.NOT_FOUND
        case DuplicateJob() | DuplicateSchedule() | Contention() | LogTrimmed():
            return Exit.REFUSED
        case InvalidInput():
            return Exit.USAGE
        case StoreError():
            return Exit.STORE
        case _:
            return Exit.REFUSED


def print_failure(failure: Failure, *, as_json: bool) -> None:
    """One line for people; with `--json` a second one for programs."""
    # A shell's words, or a driver's: a url that stands in the wrong place is quoted with all it holds.
    failure = msgspec.structs.replace(failure, message=scrubbed(failure.message))
    click.echo(f"{PROGRAM}: {one_line(failure.message)}", err=True)
    if as_json:
        click.echo(msgspec.json.encode(failure).decode(), err=True)


def one_line(text: str) -> str:
    """The text without line breaks, and with nothing that a terminal would obey."""
    return visible(" ".join(text.split()))


def visible(text: str) -> str:
    """Control characters spelled out: what a job says must not steer the reader's terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _usage_line(error: click.ClickException) -> str:
    message = one_line(error.format_message()).rstrip(".")
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if ctx is None:
        return message
    return f"{message} (see {ctx.command_path} --help)"
