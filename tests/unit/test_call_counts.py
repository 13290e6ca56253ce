"""How many functions one job costs in Headrace's own Python, over a store that does nothing.

Calls are counted, of Python and of C, and never timed: `python bench/python_cost.py` prints what they take. A
limit is a little above what was counted when it was set; whoever makes it cheaper lowers it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LIMITS = {
    "bulk_of_a_task": 66,
    "bulk_of_specs": 41,
    "alone_of_a_task": 205,
    "alone_of_specs": 126,
    "settle": 19,
    "work": 102,
}
"""Calls a job."""


@pytest.fixture(scope="module")
def counted() -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.call_counts"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts: dict[str, float] = json.loads(done.stdout)
    return counts


def test_every_step_is_limited(counted: dict[str, float]) -> None:
    assert counted.keys() == LIMITS.keys()


@pytest.mark.parametrize("step", LIMITS)
def test_a_step_takes_no_more_calls(counted: dict[str, float], step: str) -> None:
    assert counted[step] < LIMITS[step]
