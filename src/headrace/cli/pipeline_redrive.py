"""`headrace pipeline redrive`: jobs that ended badly, chosen by SQL over the lake, run again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from headrace.cli.exits import Ended, Exit, one_line
from headrace.cli.output import Output
from headrace.cli.progress import progress
from headrace.cli.selection import count, dry_run_option
from headrace.cli.session import current_settings, key_ring
from headrace.cli.settings import command
from headrace.cli.spark_options import conf_option, lake_option, master_option, storage_option
from headrace.cli.table import Column
from headrace.errors import InvalidInput

if TYPE_CHECKING:
    from headrace.spark.choosing import Group
    from headrace.spark.redrive import Redriven

SHOWN_GROUPS = 20
COLUMNS = (
    Column(name="jobs", right=True),
    Column(name="queue", rank=2),
    Column(name="type"),
    Column(name="state", rank=3),
    Column(name="category", rank=4, usual=""),
    Column(name="code", rank=1, usual=""),
    Column(name="message", cut=True),
)


class GroupRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that ended with the same error, but for its variable parts; `example` is the id of one."""

    jobs: int
    queue: str
    type: str
    state: str
    category: str
    code: str
    message: str
    example: str


class RedriveRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the jobs that were chosen or (dry run) would; `groups` only in a dry run."""

    dry_run: bool
    chosen: int
    redriven: int
    alive: int
    before: int
    gone: int
    changed: int
    sealed: int
    groups: tuple[GroupRecord, ...]


@command(
    "redrive",
    examples=(
        "headrace pipeline redrive --lake lake --where \"code = 'E503'\" --dry-run",
        "headrace pipeline redrive --lake lake --where \"queue = 'mail' AND state = 'dead'\" --limit 1000",
    ),
)
@lake_option
@storage_option
@click.option(
    "--where",
    required=True,
    metavar="SQL",
    help="A condition on the table jobs of the lake; subqueries may read attempts, too.",
)
@click.option("--limit", type=click.IntRange(min=1), help="At most this many, the oldest first.")
@click.option(
    "--again",
    is_flag=True,
    help="Also those that were redriven before and whose new job has ended.",
)
@dry_run_option
@master_option
@conf_option
def redrive(
    *,
    lake: str,
    storage_options: tuple[tuple[str, str], ...],
    where: str,
    limit: int | None,
    again: bool,
    dry_run: bool,
    master: str | None,
    config: tuple[tuple[str, str], ...],
) -> Exit:
    """Run failed, dead and cancelled jobs again, chosen by SQL over the lake.

    Each becomes a new job that is linked to the old one. A job is redriven once: the same command again
    passes it over, whatever became of its new job. A dry run shows the jobs by error, and changes nothing.
    """
    try:
        from headrace.spark import redrive as redriving
        from headrace.spark import session
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"this needs {error.name}, which is not installed: pip install 'headrace[spark]'"
        ) from error
    settings = current_settings()
    with progress("looking" if dry_run else "redriving") as bar:
        done = redriving.redrive(
            settings.url,
            lake,
            where,
            limit=limit,
            dry_run=dry_run,
            again=again,
            tenant=settings.tenant,
            keys=key_ring(settings),
            spark=lambda: session(master=master, app_name="headrace redrive", config=dict(config)),
            tell=bar.show,
            storage_options=dict(storage_options),
        )
    out = Output(as_json=settings.json)
    if out.as_json:
        out.document(_record(done))
    else:
        _print(out, done)
    if done.sealed:
        told = f"{count(done.sealed)} encrypted, without a key: give --keys, and run it again"
        raise Ended(Exit.REFUSED, "CANNOT_DECRYPT", told)
    return Exit.OK


def _print(out: Output, done: Redriven) -> None:
    out.text(f"{count(done.redriven)} {'would be ' if done.dry_run else ''}redriven")
    for jobs, what in (
        (done.before, "redriven before: their new jobs stand for them"),
        (done.alive, "redriven meanwhile, or their new jobs live: those stand for them"),
        (done.gone, "deleted from the store since"),
        (done.changed, "not as the lake says: the id was used again"),
    ):
        if jobs:
            out.text(f"  {count(jobs)} passed over, {what}")
    if done.groups:
        out.text("")
        _print_groups(out, done.groups)


def _print_groups(out: Output, groups: Sequence[Group]) -> None:
    out.table(
        COLUMNS,
        [
            (
                f"{one.jobs}",
                one.queue,
                one.type,
                one.state,
                one.category,
                one_line(one.code),
                one_line(one.message),
            )
            for one in groups[:SHOWN_GROUPS]
        ],
    )
    if len(groups) > SHOWN_GROUPS:
        rest = sum(one.jobs for one in groups[SHOWN_GROUPS:])
        out.text(f"and {count(rest)} more in {len(groups) - SHOWN_GROUPS} groups")


def _record(done: Redriven) -> RedriveRecord:
    fields = {name: getattr(done, name) for name in RedriveRecord.__struct_fields__}
    groups = tuple(
        GroupRecord(**{name: getattr(one, name) for name in GroupRecord.__struct_fields__})
        for one in done.groups
    )
    return RedriveRecord(**(fields | {"groups": groups}))
