"""What pyright knows of the typed program; mypy reads it in `make check`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import typing
from pathlib import Path

from headrace.app import Options, TaskOptions

PROGRAM = Path(__file__).with_name("typed_program.py")
IGNORE = re.compile(r"  # type: ignore\[.+\]$", re.MULTILINE)


def pyright(path: Path, folder: Path) -> list[int]:
    """The lines with errors, counted from one."""
    config = folder / "pyrightconfig.json"
    config.write_text(
        json.dumps(
            {
                "include": [str(path)],
                "typeCheckingMode": "standard",
                "enableTypeIgnoreComments": True,
                "reportUnnecessaryTypeIgnoreComment": "error",
                "reportUnusedCoroutine": False,
                "extraPaths": [str(PROGRAM.parents[2] / "src")],
            }
        )
    )
    command = [sys.executable, "-m", "basedpyright", "-p", str(config), "--outputjson"]
    command += ["--pythonpath", sys.executable]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    found = json.loads(ended.stdout)["generalDiagnostics"]
    return sorted(
        {one["range"]["start"]["line"] + 1 for one in found if one["severity"] == "error"}
    )


def test_pyright_finds_each_planted_mistake_and_nothing_else(tmp_path: Path) -> None:
    assert pyright(PROGRAM, tmp_path) == [], "an ignore hides nothing, or what is right is refused"
    bare = tmp_path / "bare.py"
    bare.write_text(IGNORE.sub("", PROGRAM.read_text()))
    planted = [
        number
        for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)
        if IGNORE.search(line)
    ]
    assert len(planted) >= 10
    assert pyright(bare, tmp_path) == planted


def test_options_are_the_same_to_type_checkers() -> None:
    """They stand twice, since a TypedDict has no defaults."""
    assert TaskOptions.__annotations__.keys() == Options.__annotations__.keys()
    for name, kind in Options.__annotations__.items():
        assert (
            typing.ForwardRef(kind, module="headrace.app.options")
            == (TaskOptions.__annotations__[name])
        ), name
