"""`headrace report` as a user types it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.text import Text

from headrace.cli import main
from headrace.cli.exits import Exit
from tests.report.tables import at


def test_text_fits_eighty_columns(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert main(["report", "--lake", str(lake)]) == Exit.OK
    out = capsys.readouterr().out
    assert max(Text.from_ansi(line).cell_len for line in out.splitlines()) <= 80
    for word in (
        "Headrace report",
        "92.3 %",
        "Traffic",
        "Critical paths",
        "cannot reach <text>",
        "█",
    ):
        assert word in out


def test_a_pipe_gets_whole_sentences(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--lake", str(lake), "--queue", "mail", "--since", "24h"]) == Exit.OK
    out = capsys.readouterr().out
    assert ", queue mail" in out
    assert "fetch in web" not in out
    assert any(
        line.startswith("4 errors in 2 groups") and len(line) > 100 for line in out.split("\n")
    )


def test_json_holds_figures_as_they_are(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--lake", str(lake), "--json", "--since", at(0).isoformat()]) == Exit.OK
    told = json.loads(capsys.readouterr().out)
    assert (told["since"], told["until"]) == ("2026-11-16T12:00:00Z", "2026-11-16T13:02:00Z")
    sections = {one["section"]: one for one in told["sections"]}
    assert sections["latency"]["rows"][0]["wait p95"] == 80.0
    assert sections["outcomes"]["rows"][0]["success"] == 0.75
    assert told["figures"][0]["name"] == "jobs ended"


def test_the_page_is_written_where_asked(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.html"
    assert main(["report", "--lake", str(lake), "--html", str(file), "--since", "1h"]) == Exit.OK
    assert f"wrote {file}" in capsys.readouterr().out
    assert file.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--since", "yesterday"], "neither a duration nor a time"),
        (["--since", "2026-11-16T12:00:00"], "neither a duration nor a time"),
        (["--since", "2030-01-01T00:00:00Z"], "ask for an earlier time"),
        (["--html", "no/such/folder/report.html"], "cannot be written"),
        (["--tenant", "acme"], "a lake holds the jobs of every tenant"),
    ],
)
def test_what_cannot_be_is_refused(
    lake: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main(["report", "--lake", str(lake), *words]) == Exit.USAGE
    assert told in capsys.readouterr().err


def test_a_span_below_an_hour_is_of_the_last_hour(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--lake", str(lake), "--json", "--since", "1m"]) == Exit.OK
    told = json.loads(capsys.readouterr().out)
    assert (told["since"], told["until"]) == ("2026-11-16T13:00:00Z", "2026-11-16T13:02:00Z")


def test_a_queue_that_the_lake_does_not_know_is_refused(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["report", "--lake", str(lake), "--queue", "mail", "--queue", "no such"]
    assert main(words) == Exit.USAGE
    error = capsys.readouterr().err
    assert "knows no queue no such; nothing was written. It knows: " in error
    assert "mail" in error


def test_a_missing_file_of_the_lake_is_told_in_one_line(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = shutil.copytree(lake, tmp_path / "lake")
    for file in (broken / "gold" / "throughput").rglob("*.parquet"):
        file.unlink()
    assert main(["report", "--lake", str(broken)]) == Exit.USAGE
    error = capsys.readouterr().err
    assert "cannot be read" in error
    assert "--full" in error
    assert "Traceback" not in error


def test_a_log_that_cannot_be_read_is_told_in_one_line(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = shutil.copytree(lake, tmp_path / "lake")
    next((broken / "gold" / "latency" / "_delta_log").glob("*.json")).write_text("{oops")
    assert main(["report", "--lake", str(broken)]) == Exit.USAGE
    error = capsys.readouterr().err
    assert "the log of" in error
    assert "Move that folder away" in error
    assert len(error.splitlines()) == 1


def test_a_folder_without_gold_says_what_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--lake", str(tmp_path)]) == Exit.USAGE
    assert "headrace pipeline run" in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "headrace.report.page", None)
    assert main(["report", "--lake", str(lake), "--html", "x.html"]) == Exit.USAGE
    assert "pip install 'headrace[report]'" in capsys.readouterr().err


def test_neither_spark_nor_pandas_nor_numpy_is_loaded(lake: Path, tmp_path: Path) -> None:
    """The extra brings none of them. The text needs no charts either."""
    script = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "py4j", "pandas", "numpy"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
from headrace.cli import main
assert main(["report", "--lake", {str(lake)!r}]) == 0
assert "altair" not in sys.modules and "vl_convert" not in sys.modules
assert main(["report", "--lake", {str(lake)!r}, "--html", {str(tmp_path / "r.html")!r}]) == 0
loaded = [name for name in sys.modules if name.startswith(("pyspark", "py4j", "headrace.spark"))]
assert loaded == [], loaded
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False
    )
    assert ran.returncode == 0, ran.stderr
