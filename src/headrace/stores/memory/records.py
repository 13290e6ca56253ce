"""Records in memory: small named documents, each replaced only by who has read its present version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from msgspec.structs import replace

from headrace.stores.base import Record


class Records:
    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, Record]] = {}

    def names(self, kind: str) -> Iterable[str]:
        return self._kinds.get(kind, {}).keys()

    def find(self, kind: str, names: Sequence[str] | None) -> list[Record]:
        records = self._kinds.get(kind, {})
        found = records if names is None else {name for name in names if name in records}
        return sorted((records[name] for name in found), key=attrgetter("name"))

    def is_current(self, read: Record) -> bool:
        record = self._kinds.get(read.kind, {}).get(read.name)
        return read.version == (0 if record is None else record.version)

    def put(self, record: Record) -> None:
        """Store what is current as its next version."""
        named = self._kinds.setdefault(record.kind, {})
        named[record.name] = replace(record, version=record.version + 1)

    def delete(self, record: Record) -> bool:
        """Delete it if it is there and current."""
        if record.version == 0 or not self.is_current(record):
            return False
        del self._kinds[record.kind][record.name]
        return True
