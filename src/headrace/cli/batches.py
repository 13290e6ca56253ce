"""`headrace batch`: how far the jobs of a batch are."""

from __future__ import annotations

from collections.abc import Mapping

import click
import msgspec

from headrace.cli.exits import Exit, one_line
from headrace.cli.progress import progress as progress_bar
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.manager import BatchProgress
from headrace.model import State


class BatchProgressRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`fraction` is the part that has ended, 0 to 1; `done`: all of it."""

    id: str
    total: int
    waiting: int
    running: int
    ended: int
    completed: int
    fraction: float
    done: bool
    states: Mapping[State, int]


@command("batch", examples=("headrace batch import-42", "headrace batch import-42 --wait --json"))
@click.argument("id")
@click.option(
    "--wait", is_flag=True, help="Wait until all have ended; exit code 1 unless all completed."
)
@in_session()
async def batch(session: Session, id: str, *, wait: bool) -> Exit:
    """Show how far the jobs of a batch are.

    Of a batch are the jobs with the tag batch=ID: those that were submitted as one, and any that were
    given the tag.
    """
    progress = await (_ended(session, id) if wait else session.jobs.batch(id))
    if session.out.as_json:
        session.out.document(_record(progress))
    else:
        _print(session, progress)
    return Exit.REFUSED if wait and progress.completed < progress.total else Exit.OK


async def _ended(session: Session, id: str) -> BatchProgress:
    with progress_bar(f"batch {one_line(id)}") as bar:
        async for progress in session.jobs.watch_batch(id):
            bar.show(progress.ended, progress.total)
    return progress


def _record(progress: BatchProgress) -> BatchProgressRecord:
    return BatchProgressRecord(
        id=progress.id,
        total=progress.total,
        waiting=progress.waiting,
        running=progress.running,
        ended=progress.ended,
        completed=progress.completed,
        fraction=progress.fraction,
        done=progress.done,
        states=progress.states,
    )


def _print(session: Session, progress: BatchProgress) -> None:
    session.out.text(
        (progress.id, "bold"),
        f": {progress.ended} of {progress.total} ended ({progress.fraction:.0%})",
    )
    session.out.fields(
        [
            ("waiting", str(progress.waiting)),
            ("running", str(progress.running)),
            *(
                (state.value, str(progress.states[state]))
                for state in State
                if state.value in progress.outcomes and progress.states[state]
            ),
        ]
    )
