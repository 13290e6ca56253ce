"""Headrace at work, in about ten seconds: the first part of `make demo`.

Some four hundred jobs of nine kinds on one SQLite file, driven by four workers that claim and settle:
retries, dead letters, delays, two cancellations, a small graph of dependencies, and a worker that
crashes and comes back too late. At the end the demo checks its own claims; exit 1 if one is false.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from headrace import (
    Dependency,
    DependencyKind,
    Event,
    HeadraceError,
    Job,
    JobManager,
    JobSpec,
    PermanentError,
    Policy,
    Priority,
    State,
    TemporaryError,
    connect,
)
from headrace.manager import CancelAcknowledged, Completed, Outcome, Stats
from headrace.model import TERMINAL, EventKind
from headrace.retry import Exponential

WORKERS = 4
CLAIM_LIMIT = 4
CRASH_LEASE_SECONDS = 1.0
DEADLINE_SECONDS = 60.0
POLICY = Policy(max_attempts=3, backoff=Exponential(initial=0.3, cap=2.0))
REFUND = "order=1207"
TRANSFORMS = ("users", "orders", "prices", "stock")
PIPELINE = ("extract", *(f"transform-{name}" for name in TRANSFORMS), "load")
DICE = random.Random(7)

console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)


# --- the jobs ------------------------------------------------------------------------------------


def everything() -> list[JobSpec]:
    """One batch: stored all together or not at all."""
    flaky = [0] * 42 + [1] * 12 + [2] * 6
    return [
        *(
            JobSpec(
                type="send_email",
                queue="mail",
                payload={"to": f"reader{number}@example.org"},
                tags={"campaign": "spring" if number % 3 else "autumn"},
                priority=Priority.HIGH if number % 10 == 0 else Priority.NORMAL,
            )
            for number in range(300)
        ),
        *(
            JobSpec(type="resize", queue="images", payload={"image": number, "flaky": times})
            for number, times in enumerate(flaky)
        ),
        *(
            JobSpec(type="import_feed", payload={"url": f"https://feeds.example/{name}"})
            for name in ("weather", "rates", "news")
        ),
        JobSpec(type="charge_card", payload={"order": 1203}),
        *(JobSpec(type="reminder", delay_seconds=1.5 + number * 0.2) for number in range(6)),
        JobSpec(id="yearly-report", type="report", delay_seconds=3600.0),
        JobSpec(id="refund-1207", type="refund", delay_seconds=600.0, tags=[REFUND]),
        JobSpec(id="big-export", type="export", priority=Priority.HIGH),
        JobSpec(id="ledger", type="reconcile", priority=Priority.CRITICAL),
        *pipeline(),
    ]


def pipeline() -> list[JobSpec]:
    """extract, then four transforms side by side, then one load that joins them."""
    first, *middle, last = PIPELINE
    joins = [Dependency(name, DependencyKind.FAN_IN) for name in middle]
    split = [Dependency(first, DependencyKind.FAN_OUT)]
    return [
        JobSpec(id=last, type="load", queue="pipeline", after=joins),
        *(JobSpec(id=name, type="transform", queue="pipeline", after=split) for name in middle),
        JobSpec(id=first, type="extract", queue="pipeline"),
    ]


class AskedToStop(Exception):
    """The heartbeat said that the job is being cancelled."""


async def perform(jobs: JobManager, job: Job) -> object:
    """The work itself: its result, or the error that says how it failed."""
    match job.type:
        case "resize":
            await asyncio.sleep(DICE.uniform(0.05, 0.2))
            if job.attempt <= job.payload["flaky"]:
                raise TemporaryError("the image server is busy")
        case "import_feed":
            await asyncio.sleep(0.05)
            raise TemporaryError(f"{job.payload['url']} answered 503")
        case "charge_card":
            raise PermanentError("the card was declined", code="card_declined")
        case "export":
            await export(jobs, job)
        case "extract" | "transform" | "load":
            await asyncio.sleep(DICE.uniform(0.3, 0.6))
        case _:
            await asyncio.sleep(DICE.uniform(0.05, 0.2))
    return {"done_by": job.assignee}


async def export(jobs: JobManager, job: Job) -> None:
    """Takes so long that only a cancellation ends it; the heartbeat brings the news."""
    assert job.lease is not None
    while True:
        await asyncio.sleep(0.1)
        beat = (await jobs.heartbeat([job.lease])).extended.get(job.id)
        if beat is None or beat.state is State.CANCELLING:
            raise AskedToStop


# --- those who work on them ----------------------------------------------------------------------


async def worker(jobs: JobManager, name: str, done: asyncio.Event) -> None:
    """Claim a few, work on them side by side, settle them in one step."""
    while not done.is_set():
        claimed = await jobs.claim(name, limit=CLAIM_LIMIT)
        if not claimed:
            await asyncio.sleep(0.05)
            continue
        outcomes = await asyncio.gather(*(attempt(jobs, job) for job in claimed))
        await jobs.settle([outcome for outcome in outcomes if outcome is not None])


async def attempt(jobs: JobManager, job: Job) -> Outcome | None:
    """One attempt. A failure is recorded at once, since its error decides what comes next."""
    try:
        result = await perform(jobs, job)
        return Completed(job_id=job.id, token=job.token, result=result, known=job)
    except AskedToStop:
        return CancelAcknowledged(job_id=job.id, token=job.token, was_executing=True)
    except (TemporaryError, PermanentError) as error:
        await jobs.fail(job.id, job.token, error)
        return None


async def zombie(jobs: JobManager, job: Job) -> HeadraceError | None:
    """Holds a job, stops answering until another worker has finished it, then reports its own result."""
    await until(jobs, job.id, TERMINAL)
    try:
        await jobs.complete(job.id, job.token, result={"done_by": "the zombie"})
    except HeadraceError as refusal:
        return refusal
    return None


async def maintenance(jobs: JobManager, done: asyncio.Event) -> None:
    """What a worker process will do on the side: take back lapsed leases, mend what a crash left."""
    while not done.is_set():
        await jobs.maintain()
        await asyncio.sleep(0.25)


async def cancellations(jobs: JobManager) -> None:
    """One job that waits, by its tag; one that runs, by its id."""
    await asyncio.sleep(1.0)
    await jobs.cancel(tags=[REFUND], reason="the customer withdrew the order")
    await until(jobs, "big-export", {State.RUNNING})
    await jobs.cancel(["big-export"], reason="nobody needs it any more")


async def until(jobs: JobManager, job_id: str, states: Collection[State]) -> None:
    """Follow the job's events until one leaves it in one of these states."""
    async for event in jobs.follow(job_id=job_id):
        if event.after in states:
            return


# --- while it runs -------------------------------------------------------------------------------


async def drive(jobs: JobManager) -> HeadraceError | None:
    """Run all of it until only the yearly report waits; how the zombie's late result was refused."""
    (held,) = await jobs.claim("worker-z", types=["reconcile"], lease_seconds=CRASH_LEASE_SECONDS)
    done = asyncio.Event()
    try:
        async with asyncio.timeout(DEADLINE_SECONDS), asyncio.TaskGroup() as group:
            late = group.create_task(zombie(jobs, held))
            group.create_task(cancellations(jobs))
            group.create_task(maintenance(jobs, done))
            for number in range(1, WORKERS + 1):
                group.create_task(worker(jobs, f"worker-{number}", done))
            await watch(jobs)
            done.set()
    except TimeoutError:
        console.print(f"[red]not finished after {DEADLINE_SECONDS:.0f} seconds")
        return None
    return late.result()


async def watch(jobs: JobManager) -> None:
    """Show how far it is, several times a second, until one job is left."""
    stats = await jobs.stats()
    goal = stats.total - 1
    with progress(goal) as show:
        while ended(stats) < goal:
            await asyncio.sleep(0.2)
            stats = await jobs.stats()
            show(stats)


@contextmanager
def progress(goal: int) -> Iterator[Callable[[Stats], None]]:
    """A bar on a terminal; elsewhere a line each second."""
    start = shown = time.monotonic()

    def line(stats: Stats) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= 1.0 or ended(stats) == goal:
            shown = now
            console.print(f"{now - start:6.1f} s  {ended(stats)} of {goal} ended, {told(stats)}")

    if not console.is_terminal:
        yield line
        return
    columns = (BarColumn(30), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("starting", total=goal)
        yield lambda stats: bar.update(task, completed=ended(stats), description=told(stats))


def ended(stats: Stats) -> int:
    return sum(stats.states[state] for state in TERMINAL)


def told(stats: Stats) -> str:
    running = stats.states[State.RUNNING] + stats.states[State.CANCELLING]
    return (
        f"{running} running, {stats.ready} ready, {stats.delayed} delayed, "
        f"{stats.states[State.BLOCKED]} blocked; {stats.failures} failed attempts"
    )


# --- what happened -------------------------------------------------------------------------------


def heading(text: str) -> None:
    console.print(f"\n[bold]{text}")


def table(*names: str) -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for name in names:
        made.add_column(name, justify="right" if name in COUNTED else "left")
    return made


COUNTED = frozenset({"jobs", "completed", "failed", "dead", "cancelled", "waiting", "attempts"})


def show_outcomes(found: Sequence[Job]) -> None:
    heading("What happened, by type")
    by_type: dict[str, list[Job]] = defaultdict(list)
    for job in found:
        by_type[job.type].append(job)
    made = table("type", "jobs", "completed", "failed", "dead", "cancelled", "waiting", "attempts")
    for name, group in [*by_type.items(), ("all", list(found))]:
        states = Counter(job.state for job in group)
        waiting = sum(not job.is_terminal for job in group)
        made.add_row(
            name,
            str(len(group)),
            count(states[State.COMPLETED], "green"),
            count(states[State.FAILED], "red"),
            count(states[State.DEAD], "red"),
            count(states[State.CANCELLED], "magenta"),
            count(waiting, "yellow"),
            str(sum(job.attempt for job in group)),
            style="bold" if name == "all" else "",
        )
    console.print(made)


def count(jobs: int, style: str) -> str:
    return f"[{style}]{jobs}[/]" if jobs else "[dim]-[/]"


def show_unhappy(found: Sequence[Job]) -> None:
    heading("Dead letters, failures, cancellations")
    made = table("type", "state", "attempts", "why")
    for job in found:
        if job.is_terminal and job.failure is not None and job.state is not State.COMPLETED:
            code = f" ({job.failure.code})" if job.failure.code else ""
            made.add_row(job.type, job.state, str(job.attempt), escape(job.failure.message + code))
    console.print(made)


def show_pipeline(events: Sequence[Event]) -> None:
    heading("The pipeline: extract, four transforms side by side, and a load that waits for all")
    spans = [(name, *span(events, name)) for name in PIPELINE]
    start = min(begin for _, begin, _ in spans)
    scale = 60 / max(end - start for _, _, end in spans)
    for name, begin, end in spans:
        indent = " " * round((begin - start) * scale)
        bar = "━" * max(1, round((end - begin) * scale))
        console.print(f"  {name:<17} {indent}[cyan]{bar}[/] [dim]{end - start:.2f} s")


def span(events: Sequence[Event], job_id: str) -> tuple[float, float]:
    """When the job began and when it completed, in seconds."""
    times = {event.kind: event.at.timestamp() for event in events if event.job_id == job_id}
    return times.get(EventKind.LEASED, 0.0), times.get(EventKind.COMPLETED, 0.0)


def show_crash(events: Sequence[Event], refusal: HeadraceError | None) -> None:
    heading("The worker that crashed")
    mine = [event for event in events if event.job_id == "ledger"]
    for event in mine:
        after = (event.at - mine[0].at).total_seconds()
        by = f" by {event.worker}, attempt {event.attempt}" if event.worker else ""
        why = f": {event.message}" if event.message else ""
        console.print(f"  {after:5.2f} s  ledger {event.kind}{by}{escape(why)}")
    console.print("  [dim]then worker-z woke up and reported its own result:")
    console.print(
        f"  [yellow]refused[/]: {escape(str(refusal))}" if refusal else "  [red]accepted!"
    )


async def show_waiting(jobs: JobManager) -> None:
    heading("Why is yearly-report not running?")
    for reason in (await jobs.explain("yearly-report")).reasons:
        console.print(f"  {escape(reason.message)}")


def show_events(events: Sequence[Event]) -> None:
    heading(f"The log holds {len(events)} events")
    kinds = Counter(event.kind.value for event in events).most_common()
    for row in (kinds[:5], kinds[5:]):
        console.print("  " + ", ".join(f"{number} {kind}" for kind, number in row))


# --- is it true? ---------------------------------------------------------------------------------


def claims(
    found: Sequence[Job], events: Sequence[Event], refusal: HeadraceError | None
) -> Iterator[tuple[str, bool]]:
    """Each statement, and whether the store bears it out."""
    by_id = {job.id: job for job in found}
    states = Counter(job.state for job in found)
    completions = Counter(event.job_id for event in events if event.kind is EventKind.COMPLETED)
    order = [event.job_id for event in events if event.kind is EventKind.LEASED]
    positions = [order.index(name) for name in PIPELINE if name in order]
    yield (
        "every job has ended, but for the one that waits on purpose",
        [job.id for job in found if not job.is_terminal] == ["yearly-report"],
    )
    yield (
        "every completed job completed exactly once",
        set(completions.values()) == {1} and len(completions) == states[State.COMPLETED],
    )
    yield (
        "jobs that fail now and then were retried until they completed",
        sum(job.failures for job in found if job.type == "resize") == 24
        and all(job.state is State.COMPLETED for job in found if job.type == "resize"),
    )
    yield (
        "three feeds are dead letters, one card failed for good",
        (states[State.DEAD] == 3 and states[State.FAILED] == 1),
    )
    yield (
        "both cancelled jobs are cancelled, one before it ran and one while it did",
        (
            [(by_id[name].state, by_id[name].attempt) for name in ("refund-1207", "big-export")]
            == [(State.CANCELLED, 0), (State.CANCELLED, 1)]
        ),
    )
    yield (
        "the pipeline ran in order",
        (
            len(positions) == len(PIPELINE)
            and positions[0] == min(positions)
            and positions[-1] == max(positions)
        ),
    )
    yield (
        "the crashed worker's job was done by another, and its late result refused",
        (
            refusal is not None
            and by_id["ledger"].state is State.COMPLETED
            and by_id["ledger"].assignee != "worker-z"
        ),
    )


def check(statements: Iterator[tuple[str, bool]]) -> bool:
    heading("Checked")
    true = True
    for statement, holds in statements:
        console.print(
            f"  [green]yes[/] {statement}" if holds else f"  [bold red]NO[/]  {statement}"
        )
        true = true and holds
    return true


def suggest(url: str) -> None:
    heading("Look for yourself")
    program = os.path.relpath(Path(sys.executable).with_name("headrace"))
    console.print(f"  export HEADRACE_URL={url}", soft_wrap=True)
    for words in ("stats", "list --state dead", "events --job ledger", "explain yearly-report"):
        console.print(f"  {program} {words}", soft_wrap=True)


async def main(folder: str | None = None) -> int:
    path = Path(folder or tempfile.mkdtemp(prefix="headrace-demo-")) / "jobs.db"
    url = f"sqlite:///{path}"
    console.print(f"[bold]Headrace[/]: jobs in {path}")
    async with await connect(url, policies=POLICY) as jobs:
        submitted = await jobs.submit_many(everything())
        console.print(
            f"{len(submitted.jobs)} jobs submitted in one step; {WORKERS} workers start\n"
        )
        start = time.monotonic()
        refusal = await drive(jobs)
        console.print(f"done in {time.monotonic() - start:.1f} seconds")
        found = (await jobs.find(limit=1000)).jobs
        events = await jobs.events(limit=10_000)
        show_outcomes(found)
        show_unhappy(found)
        show_pipeline(events)
        show_crash(events, refusal)
        await show_waiting(jobs)
        show_events(events)
        true = check(claims(found, events, refusal))
    suggest(url)
    return 0 if true else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
