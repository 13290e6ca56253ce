"""All that the store holds, under the one lock that makes each verb atomic."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from headrace.stores.memory.graph import Edges
from headrace.stores.memory.jobs import Jobs
from headrace.stores.memory.keys import Keys
from headrace.stores.memory.log import Log
from headrace.stores.memory.queues import Queues
from headrace.stores.memory.records import Records


class Tables:
    """Entered, they are this thread's alone. No verb awaits inside."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.jobs = Jobs()
        self.edges = Edges()
        self.keys = Keys()
        self.log = Log()
        self.records = Records()
        self.queues = Queues()

    def __enter__(self) -> Self:
        self._lock.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()
