"""`headrace fleet`: workers inside the tasks of a Spark cluster; started, watched and stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import click

from headrace import duration
from headrace.cli.exits import Ended, Exit
from headrace.cli.fleet_view import (
    FleetsRecord,
    Lines,
    print_fleet,
    print_fleets,
    record_of,
    summary,
)
from headrace.cli.output import Output
from headrace.cli.session import Session, current_settings, in_session
from headrace.cli.settings import Group, command, group
from headrace.cli.spark_options import conf_option, master_option
from headrace.cli.values import SECONDS

_LEVELS = ("debug", "info", "warning", "error")
_SETTINGS_WITH_VALUE = ("--url", "--tenant", "--keys")
_WAIT_SECONDS = 0.5


class FleetGroup(Group):
    """`headrace fleet module:app` is short for `headrace fleet run module:app`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = self._first_word(args)
        if at is not None and args[at] not in (*self.commands, *ctx.help_option_names):
            args = ["run", *args]
        return super().parse_args(ctx, args)

    @staticmethod
    def _first_word(args: Sequence[str]) -> int | None:
        """Of the words that are not settings; None if there is no other."""
        at = 0
        while at < len(args):
            if args[at] in _SETTINGS_WITH_VALUE:
                at += 2
            elif args[at] == "--json" or args[at].startswith(
                tuple(f"{one}=" for one in _SETTINGS_WITH_VALUE)
            ):
                at += 1
            else:
                return at
        return None


@group(
    "fleet",
    examples=(
        "headrace fleet run jobs:app --master spark://10.0.0.1:7077 --tasks 16",
        "headrace fleet status jobs",
        "headrace fleet stop jobs",
    ),
    cls=FleetGroup,
)
def fleet() -> None:
    """Run the jobs of an application on a Spark cluster, one worker in each task.

    "headrace fleet MODULE:APP" is short for "headrace fleet run MODULE:APP".
    """


@command(
    "run",
    examples=(
        "headrace fleet run jobs:app --master 'local[2]' --tasks 2",
        "headrace fleet run jobs:app --master spark://10.0.0.1:7077 --tasks 16 --name nightly --drain",
        "headrace fleet run jobs:app --master yarn --conf spark.executor.memory=2g --py-files jobs.py",
    ),
)
@click.argument("place", metavar="MODULE:APP")
@master_option
@click.option(
    "--tasks", type=click.IntRange(1), default=2, show_default=True, help="Workers, one per task."
)
@click.option("--name", metavar="NAME", help="The fleet's name.  [default: the module's]")
@click.option("--drain", is_flag=True, help="End when no job is left that it could run.")
@click.option("--queues", metavar="A,B", help="Only these queues.  [default: all]")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only jobs with every such tag.")
@click.option(
    "--concurrency",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="Handlers at once, in each worker.",
)
@click.option(
    "--grace",
    type=SECONDS,
    default="30s",
    show_default=True,
    help="How long handlers may finish once the fleet is told to stop.",
)
@click.option(
    "--poll",
    type=SECONDS,
    default="1s",
    show_default=True,
    help="Polling interval of an idle worker. New jobs wake it sooner.",
)
@conf_option
@click.option("--py-files", metavar="A,B", help="Modules and archives to bring to the executors.")
@click.option(
    "--log-level",
    type=click.Choice(_LEVELS),
    default="warning",
    show_default=True,
    help="Of the workers, in the executors' logs.",
)
def run(
    *,
    place: str,
    master: str | None,
    tasks: int,
    name: str | None,
    drain: bool,
    queues: str | None,
    tags: tuple[str, ...],
    concurrency: int,
    grace: float,
    poll: float,
    config: tuple[tuple[str, str], ...],
    py_files: str | None,
    log_level: str,
) -> Exit:
    """Run the jobs of the application MODULE:APP in Spark tasks, until the fleet is told to stop.

    "headrace fleet stop", SIGTERM and Ctrl-C let handlers finish within the grace period and give the rest
    back; a second signal ends at once. The application is loaded by its name on each executor. The store is
    the application's own unless --url names another.
    """
    with _extra():
        from headrace.spark import fleet as fleets
    from headrace.worker import Settings
    from headrace.worker.logs import configure

    configure(as_json=False, level="warning")
    settings = current_settings()
    described = fleets.Fleet(
        place=place,
        tasks=tasks,
        name=name,
        url=settings.url if settings.url_named else None,
        tenant=settings.tenant,
        settings=Settings(
            queues=None if queues is None else _words(queues),
            tags=tags,
            concurrency=concurrency,
            grace_seconds=grace,
            poll_seconds=poll,
        ),
        drain=drain,
        keys=settings.keys,
        py_files=() if py_files is None else _words(py_files),
        log_level=log_level,
    )
    lines = Lines(Output(as_json=settings.json))
    fleets.run(described, master=master, config=dict(config), on_status=lines.show)
    return Exit.OK


@command("status", examples=("headrace fleet status", "headrace fleet status nightly --json"))
@click.argument("name", required=False)
@in_session()
async def status(session: Session, *, name: str | None) -> Exit:
    """How the fleet NAME is, worker by worker; without a name, every fleet that the store knows."""
    with _extra():
        from headrace.spark.fleet import fleet_status, fleets

    if name is None:
        found = await fleets(session.jobs)
        if session.out.as_json:
            session.out.document(FleetsRecord(fleets=tuple(map(record_of, found))))
        elif not found:
            session.out.text("no fleets")
        else:
            print_fleets(session, found)
        return Exit.OK
    one = await fleet_status(session.jobs, name)
    if session.out.as_json:
        session.out.document(record_of(one))
    else:
        print_fleet(session, one)
    return Exit.OK


@command(
    "stop",
    examples=("headrace fleet stop nightly", "headrace fleet stop nightly --wait 2m"),
)
@click.argument("name")
@click.option(
    "--wait",
    type=SECONDS,
    default=0.0,
    help="Wait for its end, so long at most.  [default: do not]",
)
@in_session()
async def stop(session: Session, *, name: str, wait: float) -> Exit:
    """Let the workers of the fleet NAME finish what they hold, within its grace period, and end.

    Sets a flag in the store, which each worker reads once a second.
    """
    with _extra():
        from headrace.spark import fleet as fleets

    await fleets.stop(session.jobs, name)
    until = time.monotonic() + wait
    while True:
        one = await fleets.fleet_status(session.jobs, name)
        if one.ended_at is not None or time.monotonic() >= until:
            break
        await asyncio.sleep(_WAIT_SECONDS)
    if session.out.as_json:
        session.out.document(record_of(one))
    else:
        session.out.text(f"fleet {name} is {one.state}: {summary(one)}")
    if wait and one.ended_at is None:
        raise Ended(
            Exit.REFUSED,
            "FLEET_NOT_ENDED",
            f"fleet {name} has not ended within {duration.brief(wait)}; its flag stays set",
        )
    return Exit.OK


for _command in (run, status, stop):
    fleet.add_command(_command)


class _extra:  # noqa: N801 - reads as a statement
    """What Spark needs is not part of the core install."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ModuleNotFoundError):
            raise Ended(
                Exit.USAGE,
                "MISSING_EXTRA",
                f"fleets need {error.name}, which is not installed: pip install 'headrace[spark]'",
            ) from error


def _words(text: str) -> list[str]:
    return [one.strip() for one in text.split(",")]
