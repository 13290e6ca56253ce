"""Which jobs ran, how often and when: a file that every worker process of a race writes into.

One job has one place: when it ran last, and how often it ran. To note a run takes under a microsecond and no
server, so it weighs the same on every system. The clock is the machine's monotonic one, which all processes
share. Only the standard library: it is loaded into the environment of each system.
"""

from __future__ import annotations

import functools
import mmap
import os
import struct
import time
from pathlib import Path

VARIABLE = "RACE_LEDGER"
_TIME = struct.Struct("d")


class Ledger:
    def __init__(self, path: Path, jobs: int) -> None:
        """A ledger of so many jobs, none of which has run."""
        path.write_bytes(bytes(jobs * (_TIME.size + 1)))
        self.jobs = jobs
        self._map = _mapped(path)

    def reset(self) -> None:
        self._map[:] = bytes(len(self._map))

    def ran(self, job: int) -> float | None:
        """When the job ran; None: it has not."""
        if not self._map[self.jobs * _TIME.size + job]:
            return None
        (moment,) = _TIME.unpack_from(self._map, job * _TIME.size)
        return float(moment)

    def counts(self, jobs: int) -> bytes:
        """How often each of the first jobs ran."""
        first = self.jobs * _TIME.size
        return self._map[first : first + jobs]

    def times(self, jobs: int) -> list[float]:
        return [_TIME.unpack_from(self._map, job * _TIME.size)[0] for job in range(jobs)]


def note(job: int) -> None:
    """The job runs: called by the handler of every system."""
    written = _written()
    jobs = len(written) // (_TIME.size + 1)
    _TIME.pack_into(written, job * _TIME.size, time.monotonic())
    written[jobs * _TIME.size + job] += 1


@functools.cache
def _written() -> mmap.mmap:
    return _mapped(Path(os.environ[VARIABLE]))


def _mapped(path: Path) -> mmap.mmap:
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 0)
