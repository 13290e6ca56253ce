"""The example that pushes a DataFrame through a flaky service, in small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "enrich.py"


@pytest.mark.long
@pytest.mark.timeout(300)
def test_every_row_comes_back_exactly_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "40", "40"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second, *said, answered = done.stdout.splitlines()
    assert first.startswith("the first time: 40 rows came back, after ")
    assert second == "the second time: 40 rows came back, after 0 requests"
    assert said == [
        "each row exactly once: True",
        "some were tried again: True",
        "every city was served once: True",
    ]
    assert "200: 40" in answered
