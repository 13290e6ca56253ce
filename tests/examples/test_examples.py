from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

EXPECTED = {
    "dependencies.py": """\
it waits for 3 of 3 jobs: transform-users (blocked), transform-orders (blocked), \
transform-prices (blocked)
together: extract
together: transform-users, transform-orders, transform-prices
together: load
check is dead
""",
    "job_store.py": """\
Completed: photo-1 at 80 px, 0 retries
Completed: photo-2 at 80 px, 1 retries
Completed: photo-3 at 80 px, 0 retries
""",
    "retries.py": """\
fetch, attempt 1: retrying (0.05 s)
fetch, attempt 2: retrying (0.02 s)
fetch, attempt 3: completed
charge, attempt 1: failed
import, attempt 3: dead (bad feed)
redriven: True completed
""",
    "events.py": """\
so far: a enqueued, a leased
new: a running -> completed, 2 bytes
live: b enqueued
live: c enqueued
""",
    "webhooks.py": """\
to deliver: webhook-of=report-1
the operator sees: 127.0.0.1 leads to 127.0.0.1, which is not public
refused: address_refused
received: job.completed report-1 {'pages': 12}
delivered: 204
""",
    "batches.py": """\
stored: 5 jobs and a callback
60%: 3 completed, 2 wait
report runs: id=import-42 total=5 completed=3 failed=2
say_thanks runs: id=good type=order queue=default state=completed attempt=1 result={'total': 12}
page_someone: not needed: job good is completed
page_someone runs: id=bad type=order queue=default state=failed attempt=1 \
error={'message': 'no such card', 'category': 'permanent', 'code': None}
""",
    "schedules.py": """\
at once: nothing
03:00 in Berlin: report of 01:00, fetch of 01:00
another worker: nothing
a day later: report of 01:00
nightly is paused
poll goes on
""",
    "celery_program.py": """\
due now: 0
a minute later: 2
charged order 7 at attempt 2
chain: 200 group: 300
revoked: cancelled
beat: ['nightly']
""",
    "etl.py": """\
before six: 0 jobs ran
the file is not there: retrying
loaded: [10, 20, 30]
cleaned part 1 at attempt 2
""",
    "cancel.py": """\
would change: 4
now: cancelled, cancelled, cancelled, cancelling
the heartbeat says: cancelling
export: cancelled, freed: {'worker-1': 1}
""",
}


def _run(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """In a folder of its own, with warnings as errors, as the tests themselves are run."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "COLUMNS")
    }
    return subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        cwd=folder,
        env={**environment, "TMPDIR": str(folder), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )


def test_every_example_is_tested() -> None:
    names = {path.name for path in EXAMPLES.glob("*.py") if not path.name.startswith("web_")}
    assert names == {*EXPECTED, "dashboard.py", "demo.py", "enrich.py", "jobs.py", "lake.py"}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_prints_what_it_should(name: str, tmp_path: Path) -> None:
    done = _run(name, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == EXPECTED[name]


def test_the_readme_shows_the_example_as_it_is() -> None:
    readme = (EXAMPLES.parent / "README.md").read_text("utf-8")
    shown = readme.split("```python\n")[1].split("```")[0]
    assert (EXAMPLES / "jobs.py").read_text("utf-8").endswith(shown)
    assert len(shown.splitlines()) <= 20


def test_the_readme_example_works_with_its_two_commands(tmp_path: Path) -> None:
    """A worker, and beside it the program, twice; the worker ends in good order when it is told to."""
    shutil.copy(EXAMPLES / "jobs.py", tmp_path)
    worker = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "worker", "jobs:app"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "jobs.py"],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert (done.returncode, done.stdout) == (0, "Hello, Ada!\n"), done.stderr
    finally:
        worker.send_signal(signal.SIGTERM)
        _, log = worker.communicate(timeout=60)
    assert worker.returncode == 0, log


def test_the_demo_shows_what_it_says_and_leaves_its_file(tmp_path: Path) -> None:
    done = _run("demo.py", tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    out = done.stdout
    assert "\x1b" not in out
    # Paths and urls are left whole; everything else fits in 100 columns.
    assert all(len(line) <= 100 for line in out.splitlines() if "/" not in line)
    for heading in (
        "What happened, by type",
        "Dead letters, failures, cancellations",
        "The pipeline",
        "The worker that crashed",
        "Why is yearly-report not running?",
        "The log holds",
        "Checked",
        "Look for yourself",
    ):
        assert f"\n{heading}" in out
    assert out.count("answered 503") == 3
    assert "the lease lapsed" in out
    assert "refused: " in out
    assert out.count("\n  yes ") == 7
    assert "NO" not in out
    (path,) = tmp_path.glob("headrace-demo-*/jobs.db")
    stats = subprocess.run(
        [sys.executable, "-m", "headrace.cli", "stats", "--url", f"sqlite:///{path}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert stats.stdout.splitlines()[-1].split() == ["all", "0", "1", "373", "1", "3", "2", "380"]
