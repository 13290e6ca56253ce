"""The in-memory store: the executable definition that every other store is compared with."""

from headrace.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
