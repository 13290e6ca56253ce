"""Run a benchmark on servers that come as wheels: PostgreSQL with fsync on, Valkey with AOF always.

    python bench/servers.py postgres bench/claims.py --sizes 1000 100000
    python bench/servers.py redis bench/drain.py --jobs 20000

The server's url, with a place for a number, is handed to the script as --url. Needs the development install.
"""

from __future__ import annotations

import runpy
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.stores.postgres.server import running
from tests.stores.redis.server import start


def main() -> None:
    kind, script, *arguments = sys.argv[1:]
    if kind == "postgres":
        with running(durable=True) as url:
            _run(script, f"{url}&schema=bench{{n}}", arguments)
    elif kind == "redis":
        with tempfile.TemporaryDirectory() as folder:
            server = start(Path(folder), fsync="always")
            try:
                _run(script, f"{server.connection_url}?prefix=bench{{n}}", arguments)
            finally:
                server.stop()
    else:
        sys.exit(f"{kind!r} is not a server: say postgres or redis")


def _run(script: str, url: str, arguments: list[str]) -> None:
    sys.argv = [script, "--url", url, *arguments]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
