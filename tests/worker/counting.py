"""An application that counts what its workers ask of the store."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

from headrace import Headrace, JobManager, connect
from headrace.connect import open_store
from headrace.stores.base import JobStore


class Counting:
    """A store that counts its calls, verb by verb."""

    def __init__(self, behind: JobStore, verbs: Counter[str]) -> None:
        self._behind = behind
        self._verbs = verbs

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._behind, name)
        if not callable(verb):
            return verb

        def counted(*arguments: Any, **named: Any) -> Any:
            self._verbs[name] += 1
            return verb(*arguments, **named)

        return counted


class Counted(Headrace):
    """Every connection of this application counts, on whatever event loop it was opened."""

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, **options)
        self.verbs: Counter[str] = Counter()

    async def connect(self, store: JobStore | None = None) -> JobManager:
        if store is None:
            store = cast("JobStore", Counting(await open_store(self.url), self.verbs))
        return await connect(store, policies=self.policies, clock=self.clock)
