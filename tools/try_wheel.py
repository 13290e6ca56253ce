"""Install the wheel into bare environments and use it there: `make wheel-tests`.

Each Python that is at hand, once with the newest dependencies and once with the oldest that the wheel says
it takes.

python tools/try_wheel.py dist/headrace-*.whl [PYTHON …]
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

NAMES = tuple(f"python3.{minor}" for minor in range(11, 16))
_LOWEST = re.compile(r"^Requires-Dist: ([\w-]+)>=([\d.]+)$", re.MULTILINE)
PROGRAM = """
import asyncio, sys
from headrace import Headrace, Worker

app = Headrace("sqlite:///jobs.db")

@app.task(max_attempts=5)
async def greet(name: str) -> str:
    return f"Hello, {name}!"

async def main():
    async with app:
        job = await greet.submit("Ada")
        await Worker(app).drain()
        print(await app.result(job), sys.version.split()[0])

asyncio.run(main())
"""


def main(wheel: Path, pythons: list[str]) -> int:
    found = [python for python in pythons if _works(python)]
    if not found:
        print(f"none of these is a Python that runs: {', '.join(pythons)}", file=sys.stderr)
        return 1
    for python in found:
        for pins in ([], lowest(wheel)):
            said = tried(python, wheel, pins)
            print(f"{said}: {'the oldest' if pins else 'the newest'} dependencies", flush=True)
    return 0


def lowest(wheel: Path) -> list[str]:
    """The wheel's own dependencies, each at its lower bound."""
    with zipfile.ZipFile(wheel) as files:
        (name,) = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = files.read(name).decode()
    return [f"{name}=={version}" for name, version in _LOWEST.findall(metadata)]


def tried(python: str, wheel: Path, pins: list[str]) -> str:
    """What the program printed there."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        _run(python, "-m", "venv", str(home / "venv"))
        own = str(home / "venv" / "bin" / "python")
        _run(own, "-m", "pip", "install", "-qq", "--disable-pip-version-check", str(wheel), *pins)
        (home / "program.py").write_text(PROGRAM)
        _run(own, "-W", "error", "-m", "headrace.cli", "version", folder=home)
        _run(own, "-m", "headrace.cli", "submit", "greet", "--payload", "{}", folder=home)
        return _run(own, "-W", "error", "program.py", folder=home).strip()


def _works(python: str) -> bool:
    try:
        return subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def _run(*words: str, folder: Path | None = None) -> str:
    done = subprocess.run(words, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:] or list(NAMES)))
