"""`headrace migrate` and `headrace version`: the store's schema, and what is installed."""

from __future__ import annotations

import asyncio
import platform

import click
import msgspec

import headrace
from headrace.cli.exits import PROGRAM, Exit
from headrace.cli.output import Output
from headrace.cli.session import current_settings
from headrace.cli.settings import Settings, command
from headrace.connect import connect


class VersionRecord(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    python: str


class MigratedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Schema versions before and after. Both null: the store has no schema. 0: there was no store."""

    url: str
    from_version: int | None
    to_version: int | None


@command(
    "migrate",
    examples=("headrace migrate", "headrace migrate --url sqlite:////var/lib/app/jobs.db"),
)
def migrate() -> Exit:
    """Create the store, or bring its schema up to date."""
    settings = current_settings()
    record = asyncio.run(_migrate(settings))
    out = Output(as_json=settings.json)
    if out.as_json:
        out.document(record)
    elif record.to_version is None:
        out.text(f"{record.url} has no schema: nothing to do")
    elif record.from_version == record.to_version:
        out.text(f"{record.url} is at schema version {record.to_version}: nothing to do")
    elif record.from_version == 0:
        out.text(f"{record.url} created at schema version {record.to_version}")
    else:
        out.text(
            f"{record.url} migrated from schema version {record.from_version} to {record.to_version}"
        )
    return Exit.OK


async def _migrate(settings: Settings) -> MigratedRecord:
    raise NotImplementedError


@command("version", examples=("headrace version", "headrace version --json"))
def version() -> Exit:
    """Print the version of Headrace."""
    out = Output(as_json=current_settings().json)
    if out.as_json:
        out.document(VersionRecord(version=headrace.__version__, python=platform.python_version()))
    else:
        out.text(f"{PROGRAM} {headrace.__version__}")
    return Exit.OK
