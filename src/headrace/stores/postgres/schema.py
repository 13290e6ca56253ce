"""The schema's version, and how a database is brought to it.

Tables change by migrations, in steps. Functions follow their content: a database whose functions are not
these gets these, under the same lock and without a step, when a program opens it. A function whose
parameters or result change gets a new name, and none is dropped but by a step, so that workers of the
version before live through a deploy.
"""

from __future__ import annotations

from typing import NamedTuple

from headrace.errors import SchemaTooNew, SchemaTooOld, StoreCorrupt, StoreUnavailable
from headrace.stores.postgres.connection import Connection
from headrace.stores.postgres.errors import sqlstate
from headrace.stores.postgres.sql import Sql, migration_count
from headrace.version import VERSION

LATEST_SCHEMA_VERSION = migration_count()
WORKS_WITH = LATEST_SCHEMA_VERSION
"""The oldest programs that can go on with the latest schema, by the schema version they know.

A step that only adds (a table, a column with a default) leaves it; one that takes something away sets it to
its own number, and then programs of the versions before must be stopped first.
"""

_MAY_NOT = ("42501", "25006")
"""insufficient_privilege, read_only_sql_transaction."""
_NOT_REPLACEABLE = "42P13"
"""invalid_function_definition: the same name with another result."""


class Found(NamedTuple):
    """What a database holds."""

    version: int
    functions: str | None
    """The digest of its functions; None: from before it was kept."""
    functions_by: str | None
    """The version of Headrace that installed them."""
    works_with: int
    """The oldest schema version whose programs may go on."""


async def prepare(
    connection: Connection, sql: Sql, where: str, *, migrate: bool, create: bool
) -> None:
    """Make sure that the schema is the present one: create it, or migrate it if that is allowed.

    Otherwise raise what is wrong, and leave it as it is.
    """
    found = await look(connection, sql, where)
    if found is None:
        if not create:
            raise StoreUnavailable(
                f"{where} holds no Headrace schema {sql.schema!r}, and nothing was created: check the "
                "url, or create it with headrace submit or headrace migrate"
            )
        await upgrade(connection, sql, where)
    elif found.version > LATEST_SCHEMA_VERSION:
        if found.works_with > LATEST_SCHEMA_VERSION:
            raise SchemaTooNew(
                f"{where} has schema version {found.version}, this Headrace knows "
                f"{LATEST_SCHEMA_VERSION}; it was left untouched: use the newer Headrace"
            )
    elif found.version < LATEST_SCHEMA_VERSION:
        if not migrate:
            raise SchemaTooOld(
                f"{where} has schema version {found.version}, this Headrace needs "
                f"{LATEST_SCHEMA_VERSION}; it was left untouched: {_how()}",
                version=found.version,
            )
        await upgrade(connection, sql, where)
    elif _is_out_of_date(found, sql):
        await _renew_functions(connection, sql, where, found)


def _how() -> str:
    if WORKS_WITH < LATEST_SCHEMA_VERSION:
        return "open it with migrate=True (headrace migrate). Workers of the old version may go on meanwhile"
    return "stop the workers of the old version, then open it with migrate=True (headrace migrate)"


async def look(connection: Connection, sql: Sql, where: str) -> Found | None:
    """None: there is nothing yet."""
    exists, filled, ours = await connection.fetchrow(sql.query("schema_state"), sql.quoted_schema)
    if not exists or not filled:
        return None
    if not ours:
        raise StoreCorrupt(
            f"{where}: the schema {sql.schema!r} holds tables that are not Headrace's; it was left "
            "untouched: name another with ?schema="
        )
    version, functions, by, works_with = await connection.fetchrow(sql.query("schema_version"))
    return Found(version, functions, by, version if works_with is None else int(works_with))


async def version_of(connection: Connection, sql: Sql, where: str) -> int | None:
    """None: there is nothing yet."""
    found = await look(connection, sql, where)
    return None if found is None else found.version


async def upgrade(connection: Connection, sql: Sql, where: str) -> None:
    """Apply the migrations that are missing, each in a transaction of its own.

    A new schema is made in one, so that nobody ever sees a part of it. One process at a time: the others
    wait, then find nothing left to do.
    """
    done = False
    while not done:
        async with connection.transaction():
            found = await _locked(connection, sql, where)
            if found is None:
                await connection.execute(_create(sql))
            version = 0 if found is None else found.version
            if version < LATEST_SCHEMA_VERSION and WORKS_WITH == LATEST_SCHEMA_VERSION:
                await _drop_functions(connection, sql)
            while version < LATEST_SCHEMA_VERSION:
                # As one text: the driver fails on one without a statement, and a migration may have none.
                await connection.execute(
                    "\n".join((sql.migrations()[version], sql.query("schema_step")))
                )
                version += 1
                if version == LATEST_SCHEMA_VERSION:
                    await _install_functions(connection, sql)
                if found is not None:
                    break
            done = version >= LATEST_SCHEMA_VERSION


def _is_out_of_date(found: Found, sql: Sql) -> bool:
    """Whether these functions are to take the place of those: never older ones that of newer ones.

    While a new version is rolled out, programs of both open the database in any order.
    """
    if found.functions == sql.functions_digest():
        return False
    return found.functions_by is None or _parts(found.functions_by) <= _parts(VERSION)


def _parts(version: str) -> tuple[tuple[bool, int, str], ...]:
    return tuple(
        (part.isdigit(), int(part) if part.isdigit() else 0, part) for part in version.split(".")
    )


async def _renew_functions(connection: Connection, sql: Sql, where: str, seen: Found) -> None:
    try:
        async with connection.transaction():
            found = await _locked(connection, sql, where)
            if found is not None and found.version == seen.version and _is_out_of_date(found, sql):
                await _install_functions(connection, sql)
    except Exception as error:
        if sqlstate(error) not in _MAY_NOT:
            raise
        raise SchemaTooOld(
            f"{where} has functions of another version of Headrace, and this role may not replace them; it "
            "was left untouched: run headrace migrate as the role that owns the schema",
            version=seen.version,
        ) from error


async def _locked(connection: Connection, sql: Sql, where: str) -> Found | None:
    """What is there, while no other process changes it: until the transaction ends."""
    await connection.execute(sql.query("schema_lock"), f"headrace schema {sql.schema}")
    return await look(connection, sql, where)


async def _drop_functions(connection: Connection, sql: Sql) -> None:
    for (signature,) in await connection.fetch(sql.query("schema_functions"), sql.quoted_schema):
        await connection.execute(f"DROP FUNCTION {signature}")


async def _install_functions(connection: Connection, sql: Sql) -> None:
    # They name each other, in whatever order they come.
    await connection.execute("SET LOCAL check_function_bodies = off")
    for name, text in sql.functions().items():
        await _install(connection, sql, name, text)
    await connection.execute(sql.query("schema_columns"))
    await connection.execute(
        sql.query("schema_functions_are"),
        sql.functions_digest(),
        VERSION,
        WORKS_WITH,
    )


async def _install(connection: Connection, sql: Sql, name: str, text: str) -> None:
    """In the place of one with the same parameters. One that was never released may have had others."""
    try:
        async with connection.transaction():
            await connection.execute(text)
    except Exception as error:
        if sqlstate(error) != _NOT_REPLACEABLE:
            raise
        for (signature,) in await connection.fetch(
            sql.query("schema_functions"), sql.quoted_schema
        ):
            if _name_of(signature) == name:
                await connection.execute(f"DROP FUNCTION {signature}")
        await connection.execute(text)


def _name_of(signature: str) -> str:
    """Of `schema.name(parameters)`; the schema may be quoted, and hold anything."""
    return signature.partition("(")[0].rpartition(".")[2]


def _create(sql: Sql) -> str:
    return (
        f"CREATE SCHEMA IF NOT EXISTS {sql.quoted_schema};\n"
        f"CREATE TABLE {sql.quoted_schema}.schema_version (version integer NOT NULL);\n"
        f"INSERT INTO {sql.quoted_schema}.schema_version VALUES (0);"
    )
