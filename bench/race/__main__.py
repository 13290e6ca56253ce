"""Headrace beside its peers, in one sitting: `make race`.

    python -m bench.race                  # three interleaved rounds, and docs/performance.md; half an hour
    python -m bench.race --quick          # one round of few jobs, written nowhere: to see that it works
    python -m bench.race --payload 1024   # every job carries a kilobyte
    python -m bench.race --all            # Celery and RQ, too
    python -m bench.race --stores redis --systems with_headrace with_dramatiq

Every system runs its own worker, in an environment of its own with pinned versions, on the same servers:
PostgreSQL with fsync, Valkey without an append-only file, SQLite with a sync for every commit. A figure
counts only if every job ran exactly once and the store knows it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.race import environments, table
from bench.race.entrants import ENTRANTS, Entrant, Measure, Store
from bench.race.ledger import Ledger
from bench.race.measures import NotExactlyOnce, Sizes, Stand, measured
from bench.race.picture import picture, told
from bench.race.processes import ROOT, DriverFailed, Processes
from bench.race.results import Results
from bench.race.servers import Server, running
from headrace.version import VERSION

FULL = Sizes(each=2_000, bulk=20_000, drain_share=1.0, idle=100)
QUICK = Sizes(each=200, bulk=2_000, drain_share=0.1, idle=10)
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "performance.md"
_LEGEND = """\
Jobs a second, medians and half the spread of the rounds; CPU while one process drains. A ratio is Headrace
to the best peer of that column: of the latency (its p50) less is better. Headrace runs with its event log and
fencing on; the raw loops are bounds, not queues."""
PICTURE = ROOT / "docs" / "pictures" / "race.svg"


def main() -> None:
    chosen = _arguments()
    sizes = QUICK if chosen.quick else FULL
    entrants = [
        one
        for one in ENTRANTS
        if (chosen.all or not one.is_extra)
        and (not chosen.stores or one.store.lower() in chosen.stores)
        and (not chosen.systems or one.module in chosen.systems)
    ]
    start = time.monotonic()
    results = Results(entrants)
    rounds = 1 if chosen.quick else chosen.rounds
    with tempfile.TemporaryDirectory(prefix="headrace-race-") as folder:
        race = Race(results, sizes, rounds, chosen.payload, Path(folder))
        for store in Store:
            if on_store := [one for one in entrants if one.store is store]:
                race.run(on_store)
    section = _section(results, rounds, chosen, time.monotonic() - start)
    print(f"\n{section}")
    if chosen.write or not (chosen.quick or chosen.stores or chosen.systems or chosen.payload):
        table.write(PAGE, section)
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(picture(results, _circumstances(rounds)))
        path = PICTURE.relative_to(ROOT)
        table.write(README, f"[![{told(results)}]({path})]({PAGE.relative_to(ROOT)})")
        print(f"\nwritten into {PAGE}, {PICTURE} and {README}")
    if results.errors:
        sys.exit("\n".join(["", "These figures are missing:", *results.errors]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.race",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="one round of few jobs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--payload", type=int, default=0, help="bytes that every job carries")
    parser.add_argument("--all", action="store_true", help="Celery and RQ, too")
    parser.add_argument("--stores", nargs="+", choices=[store.lower() for store in Store])
    parser.add_argument("--systems", nargs="+", choices=sorted({one.module for one in ENTRANTS}))
    parser.add_argument(
        "--write", action="store_true", help="into the documentation, whatever it is"
    )
    return parser.parse_args()


@dataclass(frozen=True)
class Race:
    results: Results
    sizes: Sizes
    rounds: int
    payload_bytes: int
    folder: Path

    def run(self, entrants: Sequence[Entrant]) -> None:
        """All of one store, in turns: what disturbs the machine for a while disturbs everybody."""
        programs = {one.key: environments.made(one) for one in entrants}
        with running(entrants[0].store) as server, ExitStack() as exits:
            self.results.servers.append(server.about)
            stands = []
            for entrant in entrants:
                try:
                    stand = self._stand(entrant, server, programs[entrant.key])
                except DriverFailed as error:
                    self.results.errors.append(f"{entrant.key}: {error}")
                    continue
                exits.callback(stand.driver.close)
                stands.append(stand)
            for turn in range(self.rounds):
                first = turn % len(stands)
                for measure in Measure:
                    for stand in stands[first:] + stands[:first]:
                        _measure(self.results, stand, measure)

    def _stand(self, entrant: Entrant, server: Server, programs: Path) -> Stand:
        sizes = self.sizes
        book = self.folder / f"{entrant.key}.ledger"
        ledger = Ledger(book, max(entrant.jobs, sizes.each, sizes.bulk, sizes.idle + 1))
        processes = Processes(
            entrant,
            programs,
            url=server.url_for(entrant),
            book=book,
            log=self.folder / f"{entrant.key}.log",
            payload_bytes=self.payload_bytes,
        )
        return Stand(entrant, server, processes, processes.driver(), ledger, sizes)


def _measure(results: Results, stand: Stand, measure: Measure) -> None:
    entrant = stand.entrant
    if measure not in entrant.measures:
        return
    named = f"{entrant.store:10} {entrant.name:20} {measure:18}"
    try:
        figure = measured(stand, measure)
    except (NotExactlyOnce, DriverFailed) as error:
        results.errors.append(f"{named}: {error}")
        print(f"{named} {error}", flush=True)
        return
    results.add(entrant, measure, figure)
    with contextlib.suppress(BrokenPipeError):
        unit = "ms" if measure is Measure.IDLE else "jobs/s"
        print(f"{named} {figure.value:12,.2f} {unit}", flush=True)


def _section(results: Results, rounds: int, chosen: argparse.Namespace, seconds: float) -> str:
    words = [word for word in sys.argv[1:] if word != "--write"]
    command = " ".join(["python -m bench.race", *words]) if words else "make race"
    carried = f" Every job carries {chosen.payload} bytes." if chosen.payload else ""
    return (
        f"`{command}`: {_circumstances(rounds)}; {seconds / 60:.0f} minutes. "
        f"{'; '.join(results.servers)}.{carried}\n\n{_LEGEND}\n\n{table.table(results)}"
    )


def _circumstances(rounds: int) -> str:
    return (
        f"{datetime.now(UTC):%d %B %Y}, Headrace {VERSION}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores ({_processor()}), {rounds} interleaved round{'s' * (rounds > 1)}"
    )


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
