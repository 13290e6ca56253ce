"""Run a benchmark on servers that come as wheels: PostgreSQL with fsync on, Valkey with AOF always.

    python bench/servers.py postgres bench/claims.py --sizes 1000 100000
    python bench/servers.py redis bench/drain.py --jobs 20000

The server's url, with a place for a number, is handed to the script as --url. Needs the development install.
HEADRACE_TEST_POSTGRES and HEADRACE_TEST_REDIS (urls) name other servers to use instead; they keep their own
settings, and what was made there is deleted at the end.
"""

from __future__ import annotations

import asyncio
import runpy
import secrets
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.stores.postgres import server as postgres
from tests.stores.redis import server as redis


def main() -> None:
    kind, script, *arguments = sys.argv[1:]
    name = f"bench_{secrets.token_hex(4)}_"  # a server of the user's may hold an earlier run's
    if kind == "postgres":
        with postgres.running(durable=True) as url:
            try:
                _run(script, _numbered(url, "schema", name), arguments)
            finally:
                asyncio.run(postgres.drop_schemas(url, name))
    elif kind == "redis":
        with redis.running(name) as url:
            _run(script, _numbered(url, "prefix", name), arguments)
    else:
        sys.exit(f"{kind!r} is not a server: say postgres or redis")


def _numbered(url: str, option: str, name: str) -> str:
    """The url with this option, and with a place for a number behind its value: braces would be quoted."""
    return postgres.with_options(url, **{option: name}).replace(name, f"{name}{{n}}")


def _run(script: str, url: str, arguments: list[str]) -> None:
    sys.argv = [script, "--url", url, *arguments]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
