"""Cutting a store off, and nobody else who uses the server."""

from __future__ import annotations

import asyncpg

from headrace.stores.postgres import PostgresStore, wait
from tests.stores.postgres.server import without_schema


async def end_all(store: PostgresStore, url: str) -> None:
    """Terminate every connection of this store's, the one that listens included."""
    pooled = [*store._pool._idle, *store._pool._used]
    connection = await asyncpg.connect(without_schema(url))
    try:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY ($1) OR query = $2",
            [one.get_server_pid() for one in pooled if not one.is_closed()],
            f'LISTEN "{wait.channel(store._sql.schema)}"',
        )
    finally:
        await connection.close()
