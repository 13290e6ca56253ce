"""Run the kit on a store: one line per case, a count at the end, exit code 1 if anything failed."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import sys
import time
import traceback
from collections.abc import Sequence
from urllib.parse import urlsplit

from headrace import address
from headrace.testing.conformance import SUITE_NAMES, Case, load

EXAMPLES = """examples:
  python -m headrace.testing.conformance --url memory:
  python -m headrace.testing.conformance --url 'sqlite:////tmp/kit-{n}.db'
  python -m headrace.testing.conformance --url 'mine:///kit-{n}' --load my_package.my_store

{n} in the url is replaced by a fresh name, so that each case has an empty store. --load imports a module
first: let it call headrace.connect.register_store.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, run, report."""
    parser = argparse.ArgumentParser(
        prog="python -m headrace.testing.conformance",
        description="Prove that a store does what Headrace promises.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--url", required=True, help="the store, with {n} where a number may go")
    parser.add_argument("--suite", action="append", choices=SUITE_NAMES, help="only this suite")
    parser.add_argument("--case", default="", help="only cases whose name holds this text")
    parser.add_argument("--load", action="append", default=[], help="import this module first")
    parser.add_argument("--json", action="store_true", help="one JSON object per case")
    chosen = parser.parse_args(arguments)
    if "{n}" not in chosen.url and urlsplit(chosen.url).scheme != "memory":
        parser.error(
            f"{address.shown(chosen.url)} has no {{n}}: each case needs an empty store of its own"
        )
    for module in chosen.load:
        importlib.import_module(module)
    cases = [
        case
        for name in chosen.suite or SUITE_NAMES
        for case in load(name).cases
        if chosen.case in case.name
    ]
    if not cases:
        parser.error("no case has such a name")
    run = f"{time.time_ns():x}"  # so that a second run finds empty stores, too
    failed = 0
    for number, case in enumerate(cases, start=1):
        failed += not _run(case, chosen.url.replace("{n}", f"{run}_{number}"), as_json=chosen.json)
    if not chosen.json:
        print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


def _run(case: Case, url: str, *, as_json: bool) -> bool:
    start = time.perf_counter()
    problem = None
    try:
        asyncio.run(case.run(url))
    except Exception as error:  # noqa: BLE001 - whatever a store raises is the finding
        problem = "".join(traceback.format_exception(error))
    seconds = time.perf_counter() - start
    if as_json:
        print(
            json.dumps(
                {"case": case.name, "ok": problem is None, "seconds": seconds, "problem": problem}
            )
        )
    else:
        print(f"{'ok  ' if problem is None else 'FAIL'} {case.name} ({seconds * 1000:.0f} ms)")
        if problem is not None:
            print(problem)
    return problem is None


if __name__ == "__main__":
    sys.exit(main())
