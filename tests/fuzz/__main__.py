"""Fuzz a store by its url: `python -m tests.fuzz --url memory: --calls 80000`. Exit code 1 where it leaks."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.fuzz.commands import fuzz_commands
from tests.fuzz.fuzz import fuzz

COMMANDS_SHARE = 40
"""One command line for so many calls: each opens the store anew."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="sqlite:///{folder}/fuzz-{n}.db?synchronous=normal")
    parser.add_argument("--calls", type=int, default=80_000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--first", type=int, default=0, help="repeat a run from this call on")
    parser.add_argument("--verbose", action="store_true", help="with the traceback of each kind")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = chosen.url.replace("{folder}", folder)
        began = time.monotonic()
        report = asyncio.run(
            fuzz(url.replace("{n}", "1"), seed=chosen.seed, calls=chosen.calls, first=chosen.first)
        )
        print(report, flush=True)
        lines = fuzz_commands(
            url.replace("{n}", "2"), seed=chosen.seed, calls=chosen.calls // COMMANDS_SHARE
        )
        print(lines)
        print(f"{time.monotonic() - began:.0f} s")
    if chosen.verbose:
        for leaks in (*report.kinds.values(), *lines.kinds.values()):
            print("-" * 80, leaks[0].call, leaks[0].text, sep="\n")
    return int(bool(report.leaks or lines.leaks))


if __name__ == "__main__":
    sys.exit(main())
