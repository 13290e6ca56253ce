"""`headrace pipeline`, as far as it is refused before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.cli import main


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
