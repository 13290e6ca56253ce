"""`headrace pipeline`, as far as it goes without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace.spark
from headrace.cli import main
from headrace.spark import redrive as redriving
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
