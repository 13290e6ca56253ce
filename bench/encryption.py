"""What encryption at rest costs: submit, claim and complete on the memory store, without and with a key ring.

    python bench/encryption.py
    python bench/encryption.py --jobs 5000 --rounds 20 --payload-bytes 10000

CPU time per job, the rounds of both taking turns; the memory store, so that nothing hides the cost. The
least of the rounds is what the work takes, the rest is what else the machine was doing.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import time
from collections.abc import Sequence

from headrace import JobSpec, KeyRing, connect
from headrace.manager import Completed

BATCH = 100


async def one_round(keys: KeyRing | None, jobs: int, payload: str) -> tuple[float, float]:
    """Microseconds per job: submitting; claiming and completing, with a result as large."""
    async with await connect("memory:", keys=keys) as manager:
        gc.collect()
        start = time.process_time()
        for first in range(0, jobs, BATCH):
            count = min(BATCH, jobs - first)
            await manager.submit_many([JobSpec(type="noop", payload=payload)] * count)
        submitted = time.process_time()
        while claimed := await manager.claim("w", limit=BATCH):
            settled = await manager.settle(
                [
                    Completed(job_id=job.id, token=job.token, result=job.payload, known=job)
                    for job in claimed
                ]
            )
            assert not any(isinstance(outcome, Exception) for outcome in settled.outcomes)
        drained = time.process_time()
    return (submitted - start) / jobs * 1e6, (drained - submitted) / jobs * 1e6


async def measure(jobs: int, rounds: int, payload_bytes: int) -> None:
    ring = KeyRing({"bench": os.urandom(32)}, primary="bench")
    payload = "x" * payload_bytes
    taken: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for _ in range(rounds):
        for encrypted, times in taken.items():
            times.append(await one_round(ring if encrypted else None, jobs, payload))
    least = {
        encrypted: (min(one for one, _ in times), min(other for _, other in times))
        for encrypted, times in taken.items()
    }
    print(f"payload and result of {payload_bytes:,} bytes, CPU per job:")
    print("| | in the clear | encrypted | ratio |")
    print("|---|---|---|---|")
    for index, what in enumerate(("submit", "claim and complete")):
        plain, sealed = least[False][index], least[True][index]
        print(f"| {what} | {plain:.1f} µs | {sealed:.1f} µs | {sealed / plain:.2f} |")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--payload-bytes", type=int, action="append", help="default: 100 and 10,000"
    )
    chosen = parser.parse_args(arguments)
    for size in chosen.payload_bytes or (100, 10_000):
        asyncio.run(measure(chosen.jobs, chosen.rounds, size))


if __name__ == "__main__":
    main()
