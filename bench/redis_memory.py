"""What a waiting job costs in the memory of a Redis or Valkey server, its event included.

    python bench/servers.py redis bench/redis_memory.py --jobs 100000

Jobs with a payload of 100 bytes, a random id, a lifetime and no tags, on a server that holds nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Sequence

import redis.asyncio

from headrace import JobSpec, connect

BATCH = 5000
PAYLOAD = "x" * 98  # two quotes make it 100 bytes


async def used_bytes(url: str) -> int:
    client = redis.asyncio.from_url(re.sub(r"[?].*", "", url))
    try:
        return int((await client.info("memory"))["used_memory"])
    finally:
        await client.aclose()


async def measure(url: str, jobs: int) -> float:
    """Bytes per job."""
    async with await connect(url) as manager:
        before = await used_bytes(url)
        for first in range(0, jobs, BATCH):
            count = min(BATCH, jobs - first)
            await manager.submit_many([JobSpec(type="noop", payload=PAYLOAD) for _ in range(count)])
        await asyncio.sleep(2)  # buffers of the connections and of the log on disk are given back
        return (await used_bytes(url) - before) / jobs


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--url", required=True, help="an empty server")
    parser.add_argument("--jobs", type=int, default=100_000)
    chosen = parser.parse_args(arguments)
    found = asyncio.run(measure(chosen.url.replace("{n}", "1"), chosen.jobs))
    print(f"{found:.0f} bytes per waiting job ({chosen.jobs:,} jobs)")


if __name__ == "__main__":
    main()
