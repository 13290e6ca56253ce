"""The schema's version, and how a database is brought to it."""

from __future__ import annotations

from headrace.errors import SchemaTooNew, SchemaTooOld, StoreCorrupt, StoreUnavailable
from headrace.stores.postgres.pool import Connection
from headrace.stores.postgres.sql import Sql, migration_count

LATEST_SCHEMA_VERSION = migration_count()


async def prepare(
    connection: Connection, sql: Sql, where: str, *, migrate: bool, create: bool
) -> None:
    """Make sure that the schema is the present one: create it, or migrate it if that is allowed.

    Otherwise raise what is wrong, and leave it as it is.
    """
    version = await version_of(connection, sql, where)
    if version is None:
        if not create:
            raise StoreUnavailable(
                f"{where} holds no Headrace schema {sql.schema!r}, and nothing was created: check the "
                "url, or create it with headrace submit or headrace migrate"
            )
        await upgrade(connection, sql, where)
    elif version > LATEST_SCHEMA_VERSION:
        raise SchemaTooNew(
            f"{where} has schema version {version}, this Headrace knows {LATEST_SCHEMA_VERSION}; "
            "it was left untouched: use the newer Headrace"
        )
    elif version < LATEST_SCHEMA_VERSION:
        if not migrate:
            raise SchemaTooOld(
                f"{where} has schema version {version}, this Headrace needs {LATEST_SCHEMA_VERSION}; "
                "it was left untouched: stop the workers of the old version, then open it with "
                "migrate=True (headrace migrate)",
                version=version,
            )
        await upgrade(connection, sql, where)


async def version_of(connection: Connection, sql: Sql, where: str) -> int | None:
    """None: there is nothing yet."""
    exists, filled, ours = await connection.fetchrow(sql.query("schema_state"), sql.quoted_schema)
    if not exists or not filled:
        return None
    if not ours:
        raise StoreCorrupt(
            f"{where}: the schema {sql.schema!r} holds tables that are not Headrace's; it was left "
            "untouched: name another with ?schema="
        )
    return int(await connection.fetchval(sql.query("schema_version")))


async def upgrade(
    connection: Connection, sql: Sql, where: str, to_version: int = LATEST_SCHEMA_VERSION
) -> None:
    """Apply the migrations that are missing, each in a transaction of its own.

    A new schema is made in one, so that nobody ever sees a part of it. Functions belong to a version as a
    whole: they go before the first step and come after the last. One process at a time: the others
    wait, then find nothing left to do.
    """
    done = False
    while not done:
        async with connection.transaction():
            await connection.execute(sql.query("schema_lock"), f"headrace schema {sql.schema}")
            found = await version_of(connection, sql, where)
            if found is None:
                await connection.execute(_create(sql))
            version = found or 0
            if version < to_version:
                await _drop_functions(connection, sql)
            while version < to_version:
                # As one text: the driver fails on one without a statement, and a migration may have none.
                await connection.execute(
                    "\n".join((sql.migrations()[version], sql.query("schema_step")))
                )
                version += 1
                if version == LATEST_SCHEMA_VERSION:
                    await _create_functions(connection, sql)
                if found is not None:
                    break
            done = version >= to_version


async def _drop_functions(connection: Connection, sql: Sql) -> None:
    for (signature,) in await connection.fetch(sql.query("schema_functions"), sql.quoted_schema):
        await connection.execute(f"DROP FUNCTION {signature}")


async def _create_functions(connection: Connection, sql: Sql) -> None:
    # They name each other, in whatever order they come.
    await connection.execute("SET LOCAL check_function_bodies = off")
    for text in sql.functions().values():
        await connection.execute(text)


def _create(sql: Sql) -> str:
    return (
        f"CREATE SCHEMA IF NOT EXISTS {sql.quoted_schema};\n"
        f"CREATE TABLE {sql.quoted_schema}.schema_version (version integer NOT NULL);\n"
        f"INSERT INTO {sql.quoted_schema}.schema_version VALUES (0);"
    )
