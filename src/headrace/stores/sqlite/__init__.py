"""The SQLite store: one file, many processes, nothing to install."""

from headrace.stores.sqlite.schema import LATEST_SCHEMA_VERSION
from headrace.stores.sqlite.store import SqliteStore

__all__ = ["LATEST_SCHEMA_VERSION", "SqliteStore"]
