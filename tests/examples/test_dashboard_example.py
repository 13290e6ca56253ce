"""The last part of the demonstration: the dashboard over a store, which ends by itself where nobody looks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "dashboard.py"


@pytest.mark.long
def test_it_serves_runs_a_worker_and_ends_by_itself(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE), f"sqlite:///{tmp_path / 'jobs.db'}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "http://127.0.0.1:" in done.stdout
    picture = tmp_path / "dashboard.png"
    if shutil.which("chromium"):
        assert picture.read_bytes().startswith(b"\x89PNG")
    else:
        assert "no Chromium here" in done.stdout
