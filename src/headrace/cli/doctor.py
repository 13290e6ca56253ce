"""`headrace doctor`: the health of a store and of what it holds."""

from __future__ import annotations

import click
import msgspec
from rich.text import Text

from headrace.cli.exits import Exit
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.cli.table import Column
from headrace.stores.base import Finding, Health
from headrace.worker.loading import load_app

_STYLES = {Health.OK: "green", Health.WARNING: "yellow", Health.ERROR: "bold red"}


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    healthy: bool
    """No finding is an error."""
    findings: tuple[Finding, ...]


@command(
    "doctor",
    examples=(
        "headrace doctor",
        "headrace doctor --url postgresql://db.example/jobs --json",
        "headrace doctor --app jobs:app",
    ),
)
@click.option(
    "--app",
    "place",
    metavar="MODULE:APP",
    help="Name the schedules, too, for whose jobs this application has no task.",
)
@in_session()
async def doctor(session: Session, *, place: str | None) -> Exit:
    """Check the store: versions, durability, clock, backlog, leftovers.

    Each line is ok, a warning or an error, with what to do. Exit code 1 if there is an error.
    """
    app = None if place is None else load_app(place)
    runs = None if app is None else lambda type_: app.task_of(type_) is not None
    findings = await session.jobs.diagnose(runs=runs)
    healthy = all(one.health is not Health.ERROR for one in findings)
    if session.out.as_json:
        session.out.document(Diagnosis(healthy=healthy, findings=findings))
    else:
        columns = [
            Column(name="health"),
            Column(name="what"),
            Column(name="found"),
            Column(name="what to do"),
        ]
        session.out.table(
            columns,
            [
                [Text(one.health, _STYLES[one.health]), one.what, one.value, one.advice or ""]
                for one in findings
            ],
        )
    return Exit.OK if healthy else Exit.REFUSED
