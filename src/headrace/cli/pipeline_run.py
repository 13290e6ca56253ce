"""`headrace pipeline run`, `status` and `compact`: a store's event log as tables, kept up to date."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING

import click
import msgspec

from headrace import duration
from headrace.cli.exits import Exit
from headrace.cli.output import Output
from headrace.cli.progress import Bar, progress
from headrace.cli.session import current_settings, refuse_tenant
from headrace.cli.settings import command
from headrace.cli.spark_options import conf_option, lake_option, master_option, storage_option
from headrace.cli.table import Column
from headrace.cli.values import SECONDS
from headrace.errors import InvalidInput

if TYPE_CHECKING:
    from headrace.spark.lake.step import Step, Tell
    from headrace.spark.lake.upkeep import Size
    from headrace.spark.pipeline import Summary

COLUMNS = (
    Column(name="table"),
    Column(name="rows", right=True),
    Column(name="files", right=True, rank=1),
    Column(name="bytes", right=True, rank=2),
    Column(name="version", right=True, rank=3),
)

_STDERR = 2


class TableRecord(msgspec.Struct, frozen=True, kw_only=True):
    table: str
    version: int
    rows: int
    files: int
    size_bytes: int


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a run did. `since`: gold was computed again from there on; null if nothing had changed."""

    lake: str
    events: int
    since: datetime | None
    checks: int
    cursor: str
    seconds: dict[str, float]
    tables: tuple[TableRecord, ...]


class StatusRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Where a lake stands. `store_tail`: the end of the store's log; null if no store was named."""

    lake: str
    lake_id: str
    cursor: str
    store_tail: str | None
    pending: int
    ran_at: datetime | None
    runs: int
    tables: tuple[TableRecord, ...]


class UpgradeRecord(msgspec.Struct, frozen=True, kw_only=True):
    lake: str
    events: int


class CompactRecord(msgspec.Struct, frozen=True, kw_only=True):
    tables: int
    files_before: int
    files_after: int
    removed: int


@command(
    "run",
    examples=(
        "headrace pipeline run --lake lake",
        "headrace pipeline run --url postgresql://db/jobs --lake /data/lake --follow",
        "headrace pipeline run --lake lake --full",
    ),
)
@lake_option
@storage_option
@click.option("--follow", is_flag=True, help="Go on until it is interrupted.")
@click.option(
    "--every",
    type=SECONDS,
    default="10s",
    show_default=True,
    metavar="DURATION",
    help="With --follow: how often to read the log.",
)
@click.option("--full", is_flag=True, help="Read the whole log again and compute all tables again.")
@click.option("--full-check", is_flag=True, help="Check all rows, not only what this run brought.")
@click.option(
    "--batch-events",
    type=click.IntRange(1),
    metavar="N",
    help="How many events to take in at once.  [default: 1000000]",
)
@master_option
@conf_option
def run(
    *,
    lake: str,
    storage_options: tuple[tuple[str, str], ...],
    follow: bool,
    every: float,
    full: bool,
    full_check: bool,
    batch_events: int | None,
    master: str | None,
    config: tuple[tuple[str, str], ...],
) -> Exit:
    """Bring the lake up to what the store's event log holds: bronze, silver and gold tables, and check them.

    Every event is taken in once, whatever interrupts a run: the next goes on from there. A check that fails
    ends it with exit code 1. With --follow, Ctrl-C and SIGTERM end it in good order, a second one at once.
    """
    if follow and (full or full_check):
        raise click.UsageError("--full and --full-check are for a single run, without --follow")
    settings = current_settings()
    refuse_tenant(settings)
    pipeline = _pipeline()
    out = Output(as_json=settings.json)
    given = {} if batch_events is None else {"batch_events": batch_events}
    told = threading.Event()
    with progress("looking at the store and the lake") as bar:
        tell = teller(bar)

        def spark() -> object:
            bar.say("starting Spark")
            _end_on_signals(bar, told if follow else None)
            # In a thread of its own: in the main one Spark would take Ctrl-C for itself.
            with ThreadPoolExecutor(1) as aside:
                return aside.submit(_spark, master, dict(config), for_long=follow).result()

        if not follow:
            done = pipeline.run(
                settings.url,
                lake,
                spark=spark,
                full=full,
                full_check=full_check,
                tell=tell,
                storage_options=dict(storage_options),
                **given,
            )
            bar.stop()
            _print_run(out, done)
            return Exit.OK
        try:
            for done in pipeline.follow(
                settings.url,
                lake,
                spark=spark,
                every_seconds=every,
                tell=tell,
                until=told,
                storage_options=dict(storage_options),
                **given,
            ):
                _print_line(out, done)
        except Exception:
            # A service manager's signal reaches Spark's own processes, too: what breaks then is no news.
            if not told.is_set():
                raise
    return Exit.OK


@command("status", examples=("headrace pipeline status --lake lake",))
@lake_option
@storage_option
def status(*, lake: str, storage_options: tuple[tuple[str, str], ...]) -> Exit:
    """Show how far the lake has come, and how large its tables are. Starts no Spark.

    With --url, or HEADRACE_URL, also how far the store's log has gone on.
    """
    settings = current_settings()
    url = settings.url if settings.url_given else None
    found = _pipeline().status(lake, url, storage_options=dict(storage_options))
    out = Output(as_json=settings.json)
    if out.as_json:
        fields = {name: getattr(found, name) for name in StatusRecord.__struct_fields__}
        out.document(StatusRecord(**(fields | {"tables": _tables(found.tables)})))
        return Exit.OK
    behind = None
    if found.store_tail is not None:
        behind = (
            "no" if found.store_tail == found.cursor else f"yes, the log ends at {found.store_tail}"
        )
    out.fields(
        [
            ("lake", found.lake),
            ("last run", None if found.ran_at is None else duration.stamp(found.ran_at)),
            ("runs", str(found.runs)),
            ("cursor", found.cursor or "at the beginning"),
            ("behind", behind),
            ("left to do", f"{found.pending} batches" if found.pending else None),
        ]
    )
    out.text("")
    _print_tables(out, found.tables)
    return Exit.OK


@command("compact", examples=("headrace pipeline compact --lake lake --keep 7d",))
@lake_option
@storage_option
@click.option(
    "--keep",
    type=SECONDS,
    default="1d",
    show_default=True,
    metavar="DURATION",
    help="Old versions of the tables stay readable for so long.",
)
def compact(*, lake: str, storage_options: tuple[tuple[str, str], ...], keep: float) -> Exit:
    """Join the lake's small files, and delete those that no version still kept needs."""
    settings = current_settings()
    with progress("compacting"):
        done = _pipeline().compact(
            lake, keep_hours=keep / 3600, storage_options=dict(storage_options)
        )
    out = Output(as_json=settings.json)
    if out.as_json:
        out.document(CompactRecord(**done._asdict()))
    else:
        out.text(
            f"{done.files_before:,} files became {done.files_after:,}; {done.removed:,} old ones were deleted"
        )
    return Exit.OK


@command("upgrade", examples=("headrace pipeline upgrade --lake lake",))
@lake_option
@master_option
@conf_option
def upgrade(*, lake: str, master: str | None, config: tuple[tuple[str, str], ...]) -> Exit:
    """Bring a lake that an earlier version wrote to this version's form, from its own events.

    The tables of before stay in the lake's folder _headrace/format-1. The next run computes gold.
    """
    settings = current_settings()
    with progress("looking at the lake") as bar:
        events = _pipeline().upgrade(
            lake,
            spark=lambda: _spark(master, dict(config), for_long=False),
            tell=teller(bar),
        )
    out = Output(as_json=settings.json)
    if out.as_json:
        out.document(UpgradeRecord(lake=lake, events=events))
    else:
        out.text(f"the lake at {lake} has this version's form; it holds {events:,} events")
    return Exit.OK


# --- what they share -----------------------------------------------------------------------------


def _pipeline() -> ModuleType:
    try:
        from headrace.spark import pipeline
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"this needs {error.name}, which is not installed: pip install 'headrace[spark]'"
        ) from error
    return pipeline


def _spark(master: str | None, given: dict[str, str], *, for_long: bool) -> object:
    from headrace.spark import session

    # A single run is over before Java's best compiler pays off: without it, half the work to get going.
    config = {} if for_long else {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    return session(master=master, app_name="headrace pipeline", config=config | given)


def teller(bar: Bar) -> Tell:
    """Shows each step of a run: how much of it is done, and of how much, where that is known."""

    def tell(step: Step) -> None:
        words = step.doing
        if step.done is not None:
            words += f": {step.done:,}" + ("" if step.total is None else f" of {step.total:,}")
        bar.say(words, step.fraction)

    return tell


def _end_on_signals(bar: Bar, told: threading.Event | None) -> None:
    """Ctrl-C and SIGTERM set `told`; without it, or the second time, they end the process at once.

    An exception would come up inside a call to Java, which answers with pages of its own. Ending at once is
    as good: whatever ends a run, the next one goes on from there.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        if told is not None and not told.is_set():
            told.set()
            # Spark's side would tell of every connection that ends.
            logging.disable()
            sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
            return
        bar.stop()
        os.write(
            _STDERR,
            b"headrace: interrupted; every table is as its last commit left it, and the next run goes on\n",
        )
        os._exit(Exit.INTERRUPTED)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def _print_run(out: Output, done: Summary) -> None:
    if out.as_json:
        out.document(_run_record(done))
        return
    _print_tables(out, done.tables)
    out.text("")
    _print_line(out, done)


def _print_line(out: Output, done: Summary) -> None:
    if out.as_json:
        out.line(_run_record(done))
        return
    took = ", ".join(f"{step} {duration.brief(spent)}" for step, spent in done.seconds.items())
    gold = "nothing had changed" if done.since is None else _gold(done.since)
    checks = f"{done.checks} checks passed" if done.checks else "nothing to check"
    taken = "1 event" if done.events == 1 else f"{done.events:,} events"
    out.text(f"{taken} taken in; {gold}; {checks} ({took})")


def _gold(since: datetime) -> str:
    whole = since.year == 1970  # noqa: PLR2004 - the pipeline's word for all of it
    return f"gold computed {'whole' if whole else f'from {since:%Y-%m-%d %H:00} UTC on'}"


def _print_tables(out: Output, tables: Sequence[Size]) -> None:
    out.table(
        COLUMNS,
        [
            (one.table, f"{one.rows:,}", f"{one.files:,}", f"{one.size_bytes:,}", f"{one.version}")
            for one in tables
        ],
    )


def _tables(tables: Sequence[Size]) -> tuple[TableRecord, ...]:
    return tuple(TableRecord(**one._asdict()) for one in tables)


def _run_record(done: Summary) -> RunRecord:
    fields = {name: getattr(done, name) for name in RunRecord.__struct_fields__}
    return RunRecord(**(fields | {"tables": _tables(done.tables)}))
