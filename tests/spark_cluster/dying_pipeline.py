"""`headrace pipeline run`, killed with SIGKILL by itself at a chosen point.

    python dying_pipeline.py before:silver/jobs:2 replays --url … --lake …

Dies right before (after) the second commit of silver/jobs. `never` lets it run to its end. The numbers of
batches that Spark tells again, and bronze holds already, are written to the file `replays`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.cli import main
from headrace.spark.lake.bronze import Bronze
from headrace.spark.lake.delta import Folder


def die_at(when: str, table: str, count: int) -> None:
    real = Folder.commit
    seen = 0

    def commit(self: Folder, *args: Any, **kwargs: Any) -> None:
        nonlocal seen
        here = str(self.path).endswith(table)
        seen += here
        if here and seen == count and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        real(self, *args, **kwargs)
        if here and seen == count and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    Folder.commit = commit  # type: ignore[method-assign]


def note_replays(file: Path) -> None:
    real = Bronze.append

    def append(self: Bronze, events: pa.Table, stream: str, stream_batch: int) -> int:
        if self.folder.snapshot().mark(stream) >= stream_batch:
            with file.open("a") as out:
                out.write(f"{stream_batch}\n")
        return real(self, events, stream, stream_batch)

    Bronze.append = append  # type: ignore[method-assign]


if __name__ == "__main__":
    point, replays, *words = sys.argv[1:]
    note_replays(Path(replays))
    if point != "never":
        when, table, count = point.split(":")
        die_at(when, table, int(count))
    sys.exit(main(["pipeline", "run", *words]))
