"""What every command takes, before its name or after it: the store's url, the tenant, keys, `--json`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click
import msgspec
from click.core import ParameterSource

from headrace import address
from headrace.redaction import Redacted

DEFAULT_URL = address.DEFAULT_URL
URL_VARIABLE = address.VARIABLE


class Settings(Redacted, frozen=True, kw_only=True):
    """As given on the command line; what stands after the command's name wins."""

    url: str = DEFAULT_URL
    url_given: bool = False
    """Somebody named it: on the command line, or in the environment."""
    url_named: bool = False
    """On the command line: this wins over what an application says of itself."""
    tenant: str | None = None
    keys: str | None = None
    """The file of a key ring."""
    json: bool = False

    @property
    def shown_url(self) -> str:
        """The url for people to see: without user, password and options."""
        return address.shown(self.url)


class Command(click.Command):
    """A command whose help ends with examples that run as they stand."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        write_examples(formatter, self.examples)


class Group(click.Group):
    """Commands under one name, in the order a newcomer meets them, with the settings before or after."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        write_examples(formatter, self.examples)


class CommandWithMore(Command, click.Group):
    """A command that does something by itself, and has others below it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)


def write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    """As they are: a command that the help text wraps cannot be copied."""
    with formatter.section("Examples"):
        for example in examples:
            formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def command(name: str, *, examples: Sequence[str]) -> Callable[[Callable[..., Any]], Command]:
    """A command with its examples and, after its own options, the settings that every command takes."""

    def decorate(function: Callable[..., Any]) -> Command:
        made = click.command(name, cls=Command, examples=examples)(function)
        assert isinstance(made, Command)
        made.params += settings_options()
        return made

    return decorate


def command_with_more(
    name: str, *, examples: Sequence[str]
) -> Callable[[Callable[..., Any]], CommandWithMore]:
    """A command that others can be added to. Its own options are refused before those."""

    def decorate(function: Callable[..., Any]) -> CommandWithMore:
        @functools.wraps(function)
        def alone(**options: Any) -> Any:
            ctx = click.get_current_context()
            if ctx.invoked_subcommand is None:
                return function(**options)
            for param in ctx.command.params:
                source = ctx.get_parameter_source(param.name or "")
                if param.name in options and source is ParameterSource.COMMANDLINE:
                    raise click.UsageError(f"{param.opts[0]} is not for {ctx.invoked_subcommand}")
            return None

        made = click.command(
            name, cls=CommandWithMore, examples=examples, invoke_without_command=True
        )(alone)
        assert isinstance(made, CommandWithMore)
        made.params += settings_options()
        return made

    return decorate


def group(
    name: str, *, examples: Sequence[str], cls: type[Group] = Group
) -> Callable[[Callable[[], None]], Group]:
    """A group that shows its help when it is given no command."""

    def decorate(function: Callable[[], None]) -> Group:
        @functools.wraps(function)
        def show_help() -> None:
            ctx = click.get_current_context()
            if ctx.invoked_subcommand is None:
                click.echo(ctx.get_help())

        made = click.group(name, cls=cls, examples=examples, invoke_without_command=True)(show_help)
        assert isinstance(made, Group)
        made.params += settings_options()
        return made

    return decorate


def settings_options(*, variable: str | None = None) -> list[click.Parameter]:
    """The settings as options. `variable`: where the environment may name the store."""
    return [
        click.Option(
            ["--url"],
            metavar="URL",
            envvar=variable,
            show_envvar=variable is not None,
            help=f"The store.  [default: {DEFAULT_URL}]",
            expose_value=False,
            callback=_remember,
        ),
        click.Option(
            ["--tenant"],
            metavar="NAME",
            help="Act as this tenant.  [default: see every tenant]",
            expose_value=False,
            callback=_remember,
        ),
        click.Option(
            ["--keys"],
            metavar="FILE",
            help="The key ring for encrypted jobs.  [default: what HEADRACE_KEYS holds, or none]",
            expose_value=False,
            callback=_remember,
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            is_eager=True,  # whatever reads a file meanwhile must know whom it speaks to
            default=None,
            help="Print JSON instead of text.",
            expose_value=False,
            callback=_remember,
        ),
    ]


def _remember(ctx: click.Context, param: click.Parameter, value: object) -> None:
    """Note the setting for this command and those below it."""
    settings = ctx.obj if isinstance(ctx.obj, Settings) else Settings()
    if value is not None:
        settings = msgspec.structs.replace(settings, **{str(param.name): value})
        if param.name == "url":
            named = ctx.get_parameter_source("url") is ParameterSource.COMMANDLINE
            settings = msgspec.structs.replace(settings, url_given=True, url_named=named)
    ctx.obj = settings
