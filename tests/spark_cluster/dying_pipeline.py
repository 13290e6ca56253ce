"""`headrace pipeline run`, killed with SIGKILL by itself at a chosen point.

    python dying_pipeline.py before:silver/jobs:2 --url … --lake …

Dies right before (after) the second commit of silver/jobs. `never` lets it run to its end.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from headrace.cli import main
from headrace.spark.lake.delta import Folder


def die_at(when: str, table: str, count: int) -> None:
    real = Folder.commit
    seen = 0

    def commit(self: Folder, *args: Any, **kwargs: Any) -> None:
        nonlocal seen
        here = self.storage.url.endswith(table)
        seen += here
        if here and seen == count and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        real(self, *args, **kwargs)
        if here and seen == count and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    Folder.commit = commit  # type: ignore[method-assign]


if __name__ == "__main__":
    point, *words = sys.argv[1:]
    if point != "never":
        when, table, count = point.split(":")
        die_at(when, table, int(count))
    sys.exit(main(["pipeline", "run", *words]))
