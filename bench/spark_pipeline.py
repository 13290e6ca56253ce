"""How long the pipeline takes: a first run, a run with nothing new, a run with 20,000 events more.

    python bench/spark_pipeline.py                                          # SQLite, 2 million events
    python bench/spark_pipeline.py --events 1000000 2000000 5000000 10000000
    python bench/servers.py postgres bench/spark_pipeline.py --events 2000000

Every size gets a store and a lake of its own. The checks run each time, as they always do; Spark's start is
measured apart. The events lie in four days, those that come later in the minutes after: see bench/events.py.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))


from bench import events
from headrace.spark import pipeline, session

STEPS = ("prepare", "bronze and silver", "gold", "checks", "compaction")


class Turn(NamedTuple):
    """One run of the pipeline."""

    name: str
    events: int
    seconds: float
    driver_seconds: float
    """CPU of the driver's Python."""
    steps: dict[str, float]


def main() -> None:
    options = parse()
    start = time.perf_counter()
    spark = session(app_name="headrace pipeline bench")
    spark.range(1).count()
    print(f"Spark's start: {time.perf_counter() - start:.1f} s\n")
    print(
        "| events in the store | run | new events | seconds | events/s | driver's CPU | "
        + " | ".join(STEPS)
        + " |"
    )
    print("|---" * (6 + len(STEPS)) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for number, size in enumerate(options.events, 1):
            home = Path(folder) / str(number)
            home.mkdir()
            url = (options.url or f"sqlite:///{home}/jobs.db").replace("{n}", str(number))
            for turn in turns(url, home / "lake", size, options):
                show(size, turn)
    spark.stop()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nmemory of the driver's Python at its highest: {most:,.0f} MB")


def turns(url: str, lake: Path, size: int, options: argparse.Namespace) -> Iterator[Turn]:
    made = events.make(url, size)
    yield timed("first", lambda: pipeline.run(url, lake))
    yield timed("nothing new", lambda: pipeline.run(url, lake))
    events.make(url, options.more, first=made, density=size)
    yield timed("a little more", lambda: pipeline.run(url, lake))
    if options.full:
        yield timed("--full", lambda: pipeline.run(url, lake, full=True))


def timed(name: str, act: Callable[[], pipeline.Summary]) -> Turn:
    start, spent = time.perf_counter(), time.process_time()
    done = act()
    cpu = time.process_time() - spent
    return Turn(name, done.events, time.perf_counter() - start, cpu, done.seconds)


def show(size: int, turn: Turn) -> None:
    rate = f"{turn.events / turn.seconds:,.0f}" if turn.events else ""
    steps = " | ".join(f"{turn.steps[step]:.1f}" if step in turn.steps else "" for step in STEPS)
    print(
        f"| {size:,} | {turn.name} | {turn.events:,} | {turn.seconds:.1f} | {rate} "
        f"| {turn.driver_seconds:.2f} | {steps} |",
        flush=True,
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="{n} stands for a number")
    parser.add_argument("--events", type=int, nargs="+", default=[2_000_000])
    parser.add_argument("--more", type=int, default=20_000)
    parser.add_argument("--full", action="store_true", help="rebuild at the end, too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
