"""What the server and the schema say of their own health."""

from __future__ import annotations

from headrace.stores.base import Finding, Health
from headrace.stores.postgres.schema import LATEST_SCHEMA_VERSION
from headrace.stores.postgres.session import Session
from headrace.stores.postgres.sql import quote

SERVER_VERSION_MIN = 15
TRANSACTION_SECONDS_MAX = 300.0
"""A transaction that has been open for longer is probably forgotten."""
DEAD_SHARE_MAX = 0.5
DEAD_TUPLES_MIN = 100_000
CONNECTIONS_SHARE_MAX = 0.9
HOT_TABLES = (
    "bodies",
    "deleted_jobs",
    "edges",
    "events",
    "job_tags",
    "jobs",
    "keys",
    "ready_tags",
    "record_versions",
)
"""Those whose rows die as jobs run and are deleted."""


async def diagnose(session: Session, schema: str) -> list[Finding]:
    (row,) = await session.read("diagnose")
    (
        server_version,
        server_number,
        fsync,
        synchronous_commit,
        full_page_writes,
        schema_version,
        oldest_transaction,
        oldest_writer,
        hidden_transactions,
        hidden_writers,
        role,
        is_from_elsewhere,
        lanes,
        connections,
        connections_max,
    ) = row
    see_all = (
        "this role is not shown the age of the hidden ones: let an administrator run "
        f"GRANT pg_read_all_stats TO {quote(role)}"
    )
    tables = await session.read("diagnose_tables", schema, list(HOT_TABLES))
    return [
        _finding(
            "server",
            f"PostgreSQL {server_version}",
            Health.ERROR if server_number < SERVER_VERSION_MIN * 10_000 else Health.OK,
            f"use PostgreSQL {SERVER_VERSION_MIN} or newer",
        ),
        _finding(
            "fsync",
            fsync,
            Health.OK if fsync == "on" else Health.ERROR,
            "a crash can destroy the whole database: set fsync = on",
        ),
        _finding(
            "full_page_writes",
            full_page_writes,
            Health.OK if full_page_writes == "on" else Health.ERROR,
            "a crash can damage pages beyond repair: set full_page_writes = on",
        ),
        _finding(
            "synchronous_commit",
            synchronous_commit,
            Health.WARNING if synchronous_commit == "off" else Health.OK,
            "a crash can lose jobs that were acknowledged just before it: set it to on",
        ),
        _finding(
            "schema",
            f"{schema}, version {schema_version} of {LATEST_SCHEMA_VERSION}",
            Health.OK if schema_version == LATEST_SCHEMA_VERSION else Health.ERROR,
            "it was migrated meanwhile: restart this program with the newer Headrace",
        ),
        _age(
            "oldest transaction",
            oldest_transaction,
            "find it in pg_stat_activity (xact_start) and end it: nothing can be cleared away "
            "behind it",
            hidden_transactions,
            see_all,
        ),
        _age(
            "oldest writing transaction",
            oldest_writer,
            "find it in pg_stat_activity (backend_xid) and end it: no newer event can be read until "
            "it ends",
            hidden_writers,
            see_all,
        ),
        _finding(
            "event log",
            "numbered by another server" if is_from_elsewhere else "numbered by this server",
            Health.ERROR if is_from_elsewhere else Health.OK,
            "the database was restored from a dump, and its events cannot be read in order: run "  # noqa: S608 - advice to a person
            f"UPDATE {quote(schema)}.events SET xid = '0' and let every reader begin anew",
        ),
        *(_table(name, live, dead, is_unseen=is_unseen) for name, live, dead, is_unseen in tables),
        _finding("lanes", str(lanes)),
        _finding(
            "connections",
            f"{connections} of {connections_max}",
            Health.WARNING if connections > CONNECTIONS_SHARE_MAX * connections_max else Health.OK,
            "use smaller pools (?pool_size=), a connection pooler, or raise max_connections",
        ),
    ]


def _table(name: str, live: int, dead: int, *, is_unseen: bool) -> Finding:
    """Dead rows are held against autovacuum once it has had its turn: after a cleanup that takes a minute."""
    crowded = dead > max(DEAD_TUPLES_MIN, DEAD_SHARE_MAX * (live + dead))
    soon = "; autovacuum has not come by since" if crowded and is_unseen else ""
    return _finding(
        f"table {name}",
        f"{dead} dead of {live + dead} rows{soon}",
        Health.WARNING if crowded and not is_unseen else Health.OK,
        "autovacuum does not keep up: look for an old transaction, then VACUUM the table",
    )


def _age(what: str, seconds: float | None, advice: str, hidden: int, see_all: str) -> Finding:
    """`hidden`: how many others are open that may be older, since the server does not show their age."""
    old = seconds is not None and seconds > TRANSACTION_SECONDS_MAX
    value = "none" if seconds is None else f"{seconds:.1f} s"
    return _finding(
        what,
        f"{value} seen, {hidden} hidden" if hidden else value,
        Health.WARNING if old or hidden else Health.OK,
        "; ".join([advice] * old + [see_all] * bool(hidden)),
    )


def _finding(
    what: str, value: str, health: Health = Health.OK, advice: str | None = None
) -> Finding:
    """Advice is only given where something is wrong."""
    return Finding(health, what, value, None if health is Health.OK else advice)
