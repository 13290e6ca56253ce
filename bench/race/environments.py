"""An environment for each system: made once, with pinned versions, in a folder of the user's cache."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from bench.race.entrants import Entrant

FOLDER_VARIABLE = "HEADRACE_RACE_CACHE"


def folder() -> Path:
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else Path.home() / ".cache" / "headrace-race"


def made(entrant: Entrant) -> Path:
    """The folder of the programs of its environment, which is made if it is not there as it should be."""
    if entrant.packages is None:
        return Path(sys.executable).parent
    home = folder() / entrant.module
    holds, wanted = home / "holds.txt", "\n".join(entrant.packages)
    if not holds.exists() or holds.read_text() != wanted:
        print(f"  making the environment of {entrant.name}", flush=True)
        venv.create(home, clear=True, with_pip=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *entrant.packages]
        subprocess.run(pip, check=True)
        holds.write_text(wanted)
    return home / "bin"
