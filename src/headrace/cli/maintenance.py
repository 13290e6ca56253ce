"""`headrace maintenance`: the upkeep that workers do, for stores where none is running."""

from __future__ import annotations

import asyncio
import contextlib
import signal

import click
import msgspec

from headrace import duration
from headrace.cli.exits import Exit
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.maintenance import DEFAULT_STEPS, Maintenance, Round, Step

_COUNTS = {step.name: step.counts for step in DEFAULT_STEPS}


class StepRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a step did. `count`: jobs changed, deleted or submitted, or events counted."""

    step: str
    count: int
    seconds: float


class RoundRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One run of every step, in order."""

    steps: tuple[StepRecord, ...]


@command(
    "maintenance",
    examples=(
        "headrace maintenance",
        "headrace maintenance --once --json",
        "headrace maintenance --step schedules --step reap",
    ),
)
@click.option("--once", is_flag=True, help="Run every step once, and end.")
@click.option(
    "--step",
    "steps",
    multiple=True,
    type=click.Choice([step.name for step in DEFAULT_STEPS]),
    help="Only this step; may be repeated.  [default: all]",
)
@in_session()
async def maintenance(session: Session, *, once: bool, steps: tuple[str, ...]) -> Exit:
    """Take back lapsed leases, fire schedules, and clean up, until SIGTERM or Ctrl-C.

    Every worker does this by itself. Use it where none is running, or where workers run with
    --no-maintenance. Any number may run at once. It knows the default policies only: jobs of schedules
    get their limits, and ended jobs are kept for so long.
    """
    chosen = [step for step in DEFAULT_STEPS if not steps or step.name in steps]
    if once:
        _print_all(session, await Maintenance(session.jobs, chosen).once())
    else:
        await _until_stopped(session, chosen)
    return Exit.OK


async def _until_stopped(session: Session, steps: list[Step]) -> None:
    stop = asyncio.Event()
    with contextlib.suppress(NotImplementedError):  # Windows ends the process all the same
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await Maintenance(session.jobs, steps, on_round=lambda one: _print_live(session, one)).run(stop)


def _print_all(session: Session, rounds: tuple[Round, ...]) -> None:
    if session.out.as_json:
        session.out.document(RoundRecord(steps=tuple(map(_record, rounds))))
        return
    width = max(len(one.step) for one in rounds)
    for one in rounds:
        session.out.text(f"{one.step:<{width}}  {_count(one)}")


def _print_live(session: Session, one: Round) -> None:
    """Only what did something; what failed is logged."""
    if one.count == 0:
        return
    if session.out.as_json:
        session.out.line(_record(one))
    else:
        now = duration.stamp(session.jobs.clock.now())
        session.out.text(f"{now}  {one.step}  {_count(one)}")


def _count(one: Round) -> str:
    return f"{one.count} {_COUNTS[one.step]}{'' if one.count == 1 else 's'}"


def _record(one: Round) -> StepRecord:
    return StepRecord(step=one.step, count=one.count, seconds=one.seconds)
