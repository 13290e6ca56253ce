"""Real processes, killed and stopped at random: no promise is broken, on any store that outlives a process.

The full size of the same storm is `make storm`.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from headrace.model import EventKind
from tests.faults.report import Storm
from tests.faults.storm import blow


@pytest.mark.timeout(300)
async def test_a_storm_breaks_no_promise(durable_url: str, tmp_path: Path) -> None:
    storm = Storm(
        url=durable_url, jobs=600, workers=3, kills=6, stops=3, seed=random.randrange(1_000_000)
    )
    report = await blow(storm, tmp_path)
    assert not report.violations, str(report)
    # The storm was one: it hit what it was meant to hit.
    history = report.history
    assert (report.havoc.kills, report.havoc.stops) == (6, 3), str(report)
    assert len(history.jobs) >= 600
    assert report.submitters_killed > 0, str(report)
    assert report.havoc.leases_killed > 0, str(report)
    assert report.refused > 0, str(report)
    assert report.havoc.cancelled > 0, str(report)
    kinds = {event.kind for event in history.events}
    rare = {EventKind.RELEASED, EventKind.ABANDONED}
    never = {EventKind.RETIMED}  # a storm sets no clock
    assert kinds >= set(EventKind) - rare - never, str(report)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_the_storm_finds_workers_that_are_not_fenced(store_url: str, tmp_path: Path) -> None:
    storm = Storm(
        url=store_url,
        jobs=300,
        workers=3,
        kills=0,
        stops=5,
        seed=random.randrange(1_000_000),
        app="tests.faults.unfenced:app",
    )
    report = await blow(storm, tmp_path)
    assert any(one.startswith("3 fenced") for one in report.violations), str(report)
