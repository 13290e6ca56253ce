"""The command line's front door: the commands, and what becomes of every error."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from headrace import __version__ as headrace_version
from headrace.cli.batches import batch
from headrace.cli.bulk import bulk
from headrace.cli.cancel import cancel
from headrace.cli.delete import cleanup, delete
from headrace.cli.doctor import doctor
from headrace.cli.errors import errors
from headrace.cli.events import events
from headrace.cli.exits import PROGRAM, Ended, Exit, failure_of, print_failure
from headrace.cli.fleet import fleet
from headrace.cli.keys import keys
from headrace.cli.limits import limits
from headrace.cli.listing import list_jobs
from headrace.cli.maintenance import maintenance
from headrace.cli.pipeline import pipeline
from headrace.cli.queues import pause, resume
from headrace.cli.redrive import redrive
from headrace.cli.reencrypt import reencrypt
from headrace.cli.report import report
from headrace.cli.schedules import schedule
from headrace.cli.serve import serve
from headrace.cli.settings import URL_VARIABLE, settings_options, write_examples
from headrace.cli.single import explain, show
from headrace.cli.stats import stats
from headrace.cli.store import migrate, version
from headrace.cli.submit import submit
from headrace.cli.tokens import token
from headrace.cli.top import top
from headrace.cli.update import update
from headrace.cli.worker import worker
from headrace.errors import HeadraceError

EXAMPLES = (
    'headrace submit send_email --payload \'{"to": "ada@example.org"}\'',
    "headrace list --state dead",
    "headrace --url sqlite:////var/lib/app/jobs.db stats --json",
)


class Root(click.Group):
    """Commands in the order a newcomer meets them, not in that of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        write_examples(formatter, EXAMPLES)


@click.group(
    PROGRAM,
    cls=Root,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    params=settings_options(variable=URL_VARIABLE),
)
@click.version_option(headrace_version, message="%(prog)s %(version)s", prog_name=PROGRAM)
@click.pass_context
def headrace(ctx: click.Context) -> None:
    """Submit jobs to a Headrace store, look at them, and steer them.

    The store is a url: sqlite:///jobs.db (relative path), sqlite:////var/lib/jobs.db (absolute),
    postgresql://host/database, redis://host/0, or memory: (gone when the command ends). --url, --tenant,
    --keys and --json may stand before or after the command.

    Exit codes: 0 done, 1 refused or failed, 2 usage error, 3 not found, 4 store unavailable.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for _command in (
    submit,
    worker,
    serve,
    token,
    fleet,
    show,
    list_jobs,
    stats,
    top,
    batch,
    explain,
    events,
    update,
    cancel,
    redrive,
    delete,
    bulk,
    errors,
    cleanup,
    pause,
    resume,
    limits,
    schedule,
    maintenance,
    pipeline,
    report,
    keys,
    reencrypt,
    doctor,
    migrate,
    version,
):
    headrace.add_command(_command)


def main(args: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code. Errors become one line on the error stream."""
    given = list(sys.argv[1:] if args is None else args)
    try:
        answer = headrace.main(given, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except (HeadraceError, click.ClickException, Ended) as error:
        failure = failure_of(error)
        print_failure(failure, as_json=_wants_json(given))
        return int(failure.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return int(Exit.INTERRUPTED)
    except BrokenPipeError:
        # The reader has seen enough. Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(Exit.REFUSED)
    return int(answer or Exit.OK)


def _wants_json(args: Sequence[str]) -> bool:
    """Read from the words themselves: a usage error ends the parsing before the settings are known."""
    return "--json" in (args[: args.index("--")] if "--" in args else args)
