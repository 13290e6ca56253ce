"""The command line: every command with every option, wrong words for each, in this process."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from random import Random

import click
from click.testing import CliRunner

from headrace.cli.app import headrace
from headrace.cli.exits import Ended
from headrace.errors import HeadraceError
from tests.fuzz.calls import Leak
from tests.fuzz.fuzz import Report

_PARSED_ONLY = ("worker", "fleet", "pipeline", "report", "reencrypt")
"""They run on, or start Spark: their options are read, and nothing is run."""
_ONCE = {"top": ("--once",), "maintenance": ("--once",)}
_LEFT_OUT = ("url", "help", "follow", "wait", "watch", "interval", "every")
"""Named once, or asking to go on for ever."""
_WORDS = (
    *(
        "",
        " ",
        "a",
        "mail",
        "0",
        "-1",
        "1",
        "2.5",
        "1e400",
        "nan",
        "inf",
        "9" * 30,
        "5m",
        "-5m",
        "5 parsecs",
    ),
    *(
        "\udcff",
        "é",
        "٣",
        "\n",
        "x" * 3000,
        "null",
        "{}",
        "[1",
        '{"a":1}',
        '"a"',
        "@/no/file",
        "-",
    ),
    *(
        "--json",
        "--",
        "-x",
        "high",
        "dead",
        "2026-07-01T00:00:00Z",
        "2026-07-01",
        "0001-01-01T00:00:00+14:00",
    ),
    *(
        "9999-12-31T23:59:59Z",
        "a=b",
        "=",
        ",",
        "* * * * *",
        "99 * * * *",
        "Europe/Berlin",
        "Mars/Base",
    ),
    *("5/s", "0/s", "1/0s", "1e9/s", "/", "memory:", "nothing://a:b@c", "d1", "a1", "%s", "{n}"),
)


def fuzz_commands(url: str, *, seed: int, calls: int) -> Report:
    report = Report(seed)
    commands = list(_commands())
    runner = CliRunner()
    for number in range(calls):
        dice = Random(f"{seed}:command:{number}")
        names, command = dice.choice(commands)
        words = [*names, *_ONCE.get(names[0], ()), *_words(command, dice)]
        if dice.random() < 0.9:
            words += ["--url", url]
        parsed_only = names[0] in _PARSED_ONLY or "--follow" in words
        report.calls += 1
        report.by_place[" ".join(names)] += 1
        error = _parsed(words) if parsed_only else _run(runner, words)
        if error is not None:
            report.leaks.append(_leak(number, names, words, error))
    return report


def _commands() -> Iterator[tuple[list[str], click.Command]]:
    def below(names: list[str], group: click.Group) -> Iterator[tuple[list[str], click.Command]]:
        for name, command in group.commands.items():
            yield [*names, name], command
            if isinstance(command, click.Group):
                yield from below([*names, name], command)

    return below([], headrace)


def _words(command: click.Command, dice: Random) -> list[str]:
    words: list[str] = []
    for param in command.params:
        if param.name in _LEFT_OUT:
            continue
        if isinstance(param, click.Argument):
            words += [dice.choice(_WORDS) for _ in range(dice.choice((0, 1, 1, 2)))]
        elif dice.random() < 0.25:
            words.append(dice.choice(param.opts))
            if not getattr(param, "is_flag", False):
                words += [_word(param, dice) for _ in range(max(1, param.nargs))]
    return words


def _word(param: click.Parameter, dice: Random) -> str:
    if isinstance(param.type, click.Choice) and dice.random() < 0.5:
        return str(dice.choice(list(param.type.choices)))
    return dice.choice(_WORDS)


def _parsed(words: list[str]) -> BaseException | None:
    """As far as `main` goes before it runs anything."""
    group: click.Command = headrace
    context: click.Context | None = None
    rest = words
    try:
        while True:
            made = group.make_context(group.name or "", list(rest), parent=context)
            rest = [*made._protected_args, *made.args]
            if not isinstance(group, click.Group) or not rest:
                return None
            context = made
            _, found, rest = group.resolve_command(made, rest)
            assert found is not None
            group = found
    except BaseException as error:  # noqa: BLE001 - that is what is looked for
        return None if _is_refusal(error) else error


def _run(runner: CliRunner, words: list[str]) -> BaseException | None:
    result = runner.invoke(headrace, words, input="", standalone_mode=False)
    error = result.exception
    return None if error is None or _is_refusal(error) else error


def _is_refusal(error: BaseException) -> bool:
    return isinstance(
        error,
        HeadraceError
        | click.ClickException
        | click.Abort
        | click.exceptions.Exit
        | Ended
        | SystemExit,
    )


def _leak(number: int, names: list[str], words: list[str], error: BaseException) -> Leak:
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "/headrace/" in frame.filename
    ]
    where = (
        f"{frames[-1].filename.rpartition('/headrace/')[2]}:{frames[-1].lineno}" if frames else ""
    )
    return Leak(
        number,
        ascii(["headrace", *words]),
        " ".join(names),
        type(error).__name__,
        where,
        "".join(traceback.format_exception(error))[-3000:],
    )
