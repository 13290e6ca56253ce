"""What happened in a store, as tables and as a page: the end of `make demo`.

    python examples/lake.py sqlite:///jobs.db lake

runs the pipeline on Spark (events become bronze, silver and gold tables in the folder `lake`), asks the
tables a question without Spark, and writes the report.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from deltalake import DeltaTable
from rich.console import Console
from rich.markup import escape
from rich.table import Table

PROGRAM = Path(sys.executable).with_name("headrace")

console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)


def heading(text: str) -> None:
    console.print(f"\n[bold]{text}")


def headrace(*words: str) -> bool:
    """Run a command as a user would, and show it."""
    console.print(f"[dim]$ headrace {escape(' '.join(words))}", soft_wrap=True)
    return subprocess.run([PROGRAM, *words], check=False).returncode == 0


def ask(lake: Path) -> None:
    """The tables are Delta: pandas, Polars and DuckDB read them as well, with nothing of ours."""
    jobs = DeltaTable(lake / "silver" / "jobs").to_pyarrow_table(
        columns=["type", "attempt", "run_us"]
    )
    found = jobs.group_by("type").aggregate([("attempt", "sum"), ("run_us", "sum")])
    shown = Table("type", "attempts", "seconds of work", box=None, header_style="dim")
    shown.columns[1].justify = shown.columns[2].justify = "right"
    for row in found.sort_by([("run_us_sum", "descending")]).slice(0, 5).to_pylist():
        shown.add_row(row["type"], str(row["attempt_sum"]), f"{(row['run_us_sum'] or 0) / 1e6:.1f}")
    console.print(shown)


def main(url: str, folder: str) -> int:
    lake = Path(folder)
    page = lake.with_name("report.html")
    heading("The log becomes tables, on Spark")
    start = time.monotonic()
    if not headrace("pipeline", "run", "--url", url, "--lake", str(lake)):
        return 1
    console.print(f"done in {time.monotonic() - start:.0f} seconds, most of them Spark's start")
    heading("Where the work went (read from silver/jobs, without Spark)")
    ask(lake)
    heading("The report")
    if not headrace("report", "--lake", str(lake), "--html", str(page)):
        return 1
    console.print(f"\nopen [bold]{page.resolve()}[/] in a browser", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
