"""`headrace pipeline`, as far as it goes without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace.spark
from headrace.cli import main
from headrace.cli.pipeline_run import teller
from headrace.cli.progress import Bar
from headrace.spark import redrive as redriving
from headrace.spark.pipeline import Step
from headrace.spark.redrive import Redriven


def test_a_tenant_of_its_own_is_refused_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever names one would else think that the lake holds no other's jobs."""
    lake, store = tmp_path / "lake", tmp_path / "jobs.db"
    words = ["--tenant", "acme", "pipeline", "run", "--url", f"sqlite:///{store}"]
    assert main([*words, "--lake", str(lake)]) == 2
    assert "a lake holds the jobs of every tenant" in capsys.readouterr().err
    assert not lake.exists()
    assert not store.exists()


def test_a_redrive_runs_on_the_master_and_with_the_settings_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def redriven(*_: object, spark: Callable[[], object], **__: object) -> Redriven:
        assert asked == []  # Spark starts when it is needed
        spark()
        return Redriven(dry_run=False, chosen=0, before=0)

    monkeypatch.setattr(headrace.spark, "session", lambda **given: asked.append(given))
    monkeypatch.setattr(redriving, "redrive", redriven)
    words = ["pipeline", "redrive", "--lake", str(tmp_path), "--where", "true"]
    spark = ["--master", "local[1]", "--conf", "spark.a=1", "--conf", "spark.b=x=y"]
    assert main([*words, *spark]) == 0
    (given,) = asked
    assert given["master"] == "local[1]"
    assert given["config"] == {"spark.a": "1", "spark.b": "x=y"}


class Said(Bar):
    """What a bar is told to show."""

    def __init__(self) -> None:
        super().__init__("looking")
        self.said: list[tuple[str, float | None]] = []

    def say(self, doing: str, fraction: float | None = None) -> None:
        self.said.append((doing, fraction))


def test_a_run_shows_how_far_each_step_is() -> None:
    bar = Said()
    tell = teller(bar)
    tell(Step(doing="events are read"))
    tell(Step(doing="events taken in", done=400_000, place=0.25))
    tell(Step(doing="events taken in", done=1_600_123))
    tell(Step(doing="gold tables computed", done=0, total=10))
    tell(Step(doing="gold tables computed", done=3, total=10))
    assert bar.said == [
        ("events are read", None),
        ("events taken in: 400,000", 0.25),
        ("events taken in: 1,600,123", None),
        ("gold tables computed: 0 of 10", 0.0),
        ("gold tables computed: 3 of 10", 0.3),
    ]
