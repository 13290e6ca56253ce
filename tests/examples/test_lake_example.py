"""The end of the demonstration: the pipeline on Spark, a question to the tables, and the report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.lakes import happen

EXAMPLE = Path(__file__).parents[2] / "examples" / "lake.py"


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_log_becomes_tables_and_a_page(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=normal"
    events = happen(url, 1, 120)
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), url, str(tmp_path / "lake")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert f"{len(events):,} events taken in; gold computed whole" in done.stdout
    assert "checks passed" in done.stdout
    assert f"open {tmp_path / 'report.html'} in a browser" in done.stdout
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!doctype html>")
