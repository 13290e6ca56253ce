"""The store around a command: opened before it, closed after it, whatever happens in between."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec

import click

from headrace import validation
from headrace.cli.exits import Exit
from headrace.cli.output import Output
from headrace.cli.settings import Settings
from headrace.connect import connect
from headrace.crypto import KeyRing
from headrace.errors import StoreUnavailable
from headrace.manager import JobManager

P = ParamSpec("P")

_ALLOW = "allow it to be created"


class Session:
    """What a command works with: the jobs, and where its answer goes."""

    def __init__(self, settings: Settings, jobs: JobManager, out: Output) -> None:
        self.settings = settings
        self.jobs = jobs
        self.out = out


SessionCommand = Callable[Concatenate[Session, P], Awaitable[Exit]]


def in_session(
    *, create: bool = False, check: Callable[..., None] | None = None
) -> Callable[[SessionCommand[P]], Callable[P, Exit]]:
    """Run an async command on the store that the settings name.

    Only a command that says `create` makes a store where there is none. `check` sees the command's
    options first: what it refuses leaves no trace, not even an empty store.
    """

    def decorate(function: SessionCommand[P]) -> Callable[P, Exit]:
        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> Exit:
            settings = current_settings()
            if check is not None:
                check(*args, **kwargs)

            async def within() -> Exit:
                async with await _open(settings, create=create) as jobs:
                    session = Session(settings, jobs, Output(as_json=settings.json))
                    return await function(session, *args, **kwargs)

            return asyncio.run(within())

        return run

    return decorate


async def _open(settings: Settings, *, create: bool) -> JobManager:
    keys = key_ring(settings)
    try:
        return await connect(settings.url, tenant=settings.tenant, create=create, keys=keys)
    except StoreUnavailable as error:
        # The store speaks to programs; at a shell, allowing it to be created is another command.
        told = error.message.replace(_ALLOW, "create it with headrace submit or headrace migrate")
        raise StoreUnavailable(told) from error


def key_ring(settings: Settings) -> KeyRing | None:
    """The ring of the file that was named, or of the environment."""
    return KeyRing.from_environment() if settings.keys is None else KeyRing.from_file(settings.keys)


def refuse_tenant(settings: Settings) -> None:
    """For commands about a whole lake: whoever names a tenant would think that it holds no other's jobs."""
    if settings.tenant is not None:
        raise click.UsageError(
            "a lake holds the jobs of every tenant: leave out --tenant; nothing was read or written"
        )


def current_settings() -> Settings:
    settings = click.get_current_context().find_object(Settings) or Settings()
    if settings.tenant is not None:
        validation.check_name(settings.tenant, "tenant")
    return settings
