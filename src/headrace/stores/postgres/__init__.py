"""The PostgreSQL store: many hosts, submission inside the caller's own transaction."""

from headrace.stores.postgres.schema import LATEST_SCHEMA_VERSION
from headrace.stores.postgres.store import PostgresStore, TransactionStore

__all__ = ["LATEST_SCHEMA_VERSION", "PostgresStore", "TransactionStore"]
