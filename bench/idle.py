"""What an idle worker asks of its store: verbs per second, and what the server makes of them.

    python bench/idle.py                                  # SQLite
    python bench/servers.py postgres bench/idle.py        # transactions per second, by the server's count
    python bench/servers.py redis bench/idle.py           # commands per second, by the server's count

One worker with the settings that `headrace worker` has, maintenance included, and no jobs.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from headrace import Worker
from tests.worker.counting import Counted

WARM_UP_SECONDS = 15.0
"""Every step of maintenance has run once by then."""


async def server_count(url: str) -> int | None:
    """How much the server has done so far; None where there is none."""
    if url.startswith("redis"):
        from redis.asyncio import Redis  # noqa: PLC0415 - only for this store

        client = Redis.from_url(url.partition("?")[0])
        done: int = (await client.info("stats"))["total_commands_processed"]
        await client.aclose()
        return done
    if url.startswith("postgres"):
        import asyncpg  # noqa: PLC0415 - only for this store

        connection = await asyncpg.connect(url.partition("&schema")[0])
        found: int = await connection.fetchval(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        )
        await connection.close()
        return found
    return None


async def measure(url: str, seconds: float) -> None:
    app = Counted(url)

    @app.task
    async def nothing() -> None: ...

    async with app:
        worker = Worker(app)
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(WARM_UP_SECONDS)
        app.verbs.clear()
        before = await server_count(url)
        await asyncio.sleep(seconds)
        verbs, after = app.verbs.copy(), await server_count(url)
        worker.stop()
        await running
    print(f"{url.partition(':')[0]}: {verbs.total() / seconds:.1f} verbs/s", flush=True)
    for name, count in verbs.most_common():
        print(f"    {name:<12} {count / seconds:.2f}/s")
    if before is not None and after is not None:
        print(f"    by the server's own count: {(after - before) / seconds:.1f}/s")


def main(args: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="one store, empty; {n} becomes a number")
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args(args)
    if arguments.url:
        asyncio.run(measure(arguments.url.format(n=1), arguments.seconds))
        return
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(f"sqlite:///{Path(folder) / 'jobs.db'}", arguments.seconds))


if __name__ == "__main__":
    main()
