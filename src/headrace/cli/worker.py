"""`headrace worker`: run the jobs of an application."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import click

from headrace.cli.exits import Exit
from headrace.cli.probes import Listening, listening, merged_metrics, process_metrics
from headrace.cli.session import current_settings, key_ring
from headrace.cli.settings import command
from headrace.cli.values import SECONDS

NAMED_URL_VARIABLE = "HEADRACE_SUPERVISED_URL"
"""The store that was named on the command line of several processes, for each of them."""
_LEVELS = ("debug", "info", "warning", "error")


@command(
    "worker",
    examples=(
        "headrace worker jobs:app",
        "headrace worker jobs:app --queues mail,reports --concurrency 50 --processes 2",
    ),
)
@click.argument("place", metavar="MODULE:APP")
@click.option("--queues", metavar="A,B", help="Only these queues.  [default: all]")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only jobs with every such tag.")
@click.option(
    "--concurrency", type=click.IntRange(1), default=50, show_default=True, help="Handlers at once."
)
@click.option(
    "--processes", type=click.IntRange(1), default=1, show_default=True, help="Worker processes."
)
@click.option(
    "--grace",
    type=SECONDS,
    default="30s",
    show_default=True,
    help="How long handlers may finish after SIGTERM.",
)
@click.option(
    "--poll",
    type=SECONDS,
    default="1s",
    show_default=True,
    help="Polling interval of an idle worker. New jobs wake it sooner.",
)
@click.option(
    "--children",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help="Child processes for isolated handlers.",
)
@click.option("--child-memory-mb", type=click.IntRange(16), help="Memory limit of a child process.")
@click.option(
    "--no-maintenance", is_flag=True, help="Leave leases, schedules and retention to others."
)
@click.option(
    "--health-port",
    type=click.IntRange(1, 65535),
    help="Answer /live and /ready on this port.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(1, 65535),
    help="Serve Prometheus metrics on this port, which may be the same.",
)
@click.option(
    "--host",
    "--metrics-host",
    "host",
    default="127.0.0.1",
    show_default=True,
    help="Address of both ports.",
)
@click.option(
    "--reload",
    is_flag=True,
    help="Start again whenever a Python file below the current directory changes. For development.",
)
@click.option("--log-level", type=click.Choice(_LEVELS), default="info", show_default=True)
@click.option("--log-json", is_flag=True, help="Log one JSON object per line.")
def worker(
    *,
    place: str,
    queues: str | None,
    tags: tuple[str, ...],
    concurrency: int,
    processes: int,
    grace: float,
    poll: float,
    children: int,
    child_memory_mb: int | None,
    no_maintenance: bool,
    health_port: int | None,
    metrics_port: int | None,
    host: str,
    reload: bool,
    log_level: str,
    log_json: bool,
) -> Exit:
    """Run the jobs of the application MODULE:APP, until SIGTERM or Ctrl-C.

    The first signal lets handlers finish within the grace period and gives the rest back; a second ends
    at once. The store is the application's own (that of HEADRACE_URL where it names none) unless --url
    names another.
    """
    from headrace.worker import Settings
    from headrace.worker.loading import load_app
    from headrace.worker.logs import configure
    from headrace.worker.probes import WorkerProbe
    from headrace.worker.serving import serve

    configure(as_json=log_json, level=log_level)
    if reload:
        return _reload(processes)
    app = load_app(place)
    settings = current_settings()
    if settings.url_named:
        app.url = settings.url
    elif NAMED_URL_VARIABLE in os.environ:
        app.url = os.environ[NAMED_URL_VARIABLE]
    if settings.tenant is not None:
        app.tenant = settings.tenant
    app.keys = key_ring(settings) or app.keys
    if processes > 1:
        return _supervise(processes, Listening(host, health_port, metrics_port))
    probe = WorkerProbe(None if metrics_port is None else process_metrics(app))
    with listening(probe, Listening(host, health_port, metrics_port)):
        return Exit(
            serve(
                app,
                Settings(
                    queues=None if queues is None else [one.strip() for one in queues.split(",")],
                    tags=tags,
                    concurrency=concurrency,
                    grace_seconds=grace,
                    poll_seconds=poll,
                    children=children,
                    child_memory_mb=child_memory_mb,
                    maintenance=not no_maintenance,
                ),
                probe,
            )
        )


def _reload(processes: int) -> Exit:
    """One worker in a process of its own: the modules of this one could not be loaded twice."""
    from headrace.worker.reload import Reloader

    if processes > 1:
        raise click.UsageError(
            "--reload runs one process; leave --processes out. Nothing was started."
        )
    command = _single(click.get_current_context())
    return Exit(min(1, Reloader(command, Path.cwd(), _named_url()).run()))


def _named_url() -> dict[str, str]:
    """The store named on the command line, for the environment of other processes.

    Not for their command line: a url may hold a password, and everybody can read a command line.
    """
    settings = current_settings()
    return {NAMED_URL_VARIABLE: settings.url} if settings.url_named else {}


def _supervise(processes: int, where: Listening) -> Exit:
    """Several processes, with one address for the probes of all."""
    from headrace.worker.probes import ProcessesProbe
    from headrace.worker.supervisor import Supervisor

    single = _single(click.get_current_context())
    # Short: the path of a Unix socket is limited to some hundred characters.
    with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
        sockets = [Path(folder) / str(number) for number in range(processes)] if where.used else []
        merge = None if where.metrics_port is None else merged_metrics()
        with listening(ProcessesProbe(sockets, merge), where):
            return Exit(min(1, Supervisor(single, processes, _named_url(), sockets).run()))


def _single(ctx: click.Context) -> list[str]:
    """The command line of one of several processes: the same, but for their number."""
    settings = current_settings()
    words = [sys.executable, "-m", "headrace.cli", "worker", ctx.params["place"]]
    if settings.tenant is not None:
        words += ["--tenant", settings.tenant]
    if settings.keys is not None:
        words += ["--keys", settings.keys]
    for option in ctx.command.params:
        value = ctx.params.get(str(option.name))
        if not isinstance(option, click.Option) or option.name in ("processes", "reload"):
            continue
        if value is None or value is False:
            continue
        if option.is_flag:
            words.append(option.opts[0])
        else:
            for one in value if option.multiple else [value]:
                words += [option.opts[0], str(one)]
    return words
