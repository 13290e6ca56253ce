"""Every statement that reaches a database, prepared by that database's own engine.

    python tools/lint_sql.py

Whether a test runs it or not: a name that is not there, a comma too many, or an index that is named and
cannot serve is found here. One function per store.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import asyncpg

from headrace.stores.postgres import PostgresStore
from headrace.stores.postgres.sql import SCHEMA_DEFAULT, Sql, statement_names
from headrace.stores.sqlite import bulk, schema, sql

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.stores.postgres import server

_NAMED = re.compile(r":([a-z_]+)")


def main() -> None:
    in_sqlite = list(check_sqlite())
    with server.running(durable=False) as url:
        in_postgres = asyncio.run(_all(check_postgres(url)))
    for problem in (*in_sqlite, *in_postgres):
        print(problem)
    print(f"SQLite: {len(sql.STATEMENTS)} statements prepared, {len(in_sqlite)} refused")
    count = len(statement_names())
    functions = len(Sql(SCHEMA_DEFAULT).functions())
    print(
        f"PostgreSQL: {count} statements prepared and {functions} functions checked, "
        f"{len(in_postgres)} refused"
    )
    sys.exit(bool(in_sqlite or in_postgres))


async def _all(problems: AsyncIterator[str]) -> list[str]:
    return [problem async for problem in problems]


def check_sqlite() -> Iterator[str]:
    """What SQLite says of each statement on a new file, also of those of many rows."""
    with closing(sqlite3.connect(":memory:")) as connection:
        schema.upgrade(connection)
        for name, text in sql.STATEMENTS.items():
            for variant in (text, *bulk.for_sizes(text).values()):
                parameters = dict.fromkeys(_NAMED.findall(variant)) or [None] * variant.count("?")
                try:
                    connection.execute(f"EXPLAIN {variant}", parameters)
                except sqlite3.Error as error:
                    yield f"sqlite/sql/*.sql: {name}: {error}"
                    break


async def check_postgres(url: str) -> AsyncIterator[str]:
    """What PostgreSQL says of each statement, and of each function by its language's own checks.

    Those of SQL are analysed whole. Those of PL/pgSQL are parsed, with each of their statements; the names in
    them are looked up when they run, which the tests of plans have all of them do.
    """
    own = Sql("lint")
    await (await PostgresStore.open(url, schema=own.schema)).close()
    connection = await asyncpg.connect(url)
    try:
        for name in sorted(statement_names()):
            try:
                await connection.prepare(own.query(name))
            except asyncpg.PostgresError as error:
                yield f"postgres/sql/*.sql: {name}: {error}"
        async with connection.transaction():
            await connection.fetch(own.query("load_begin"))  # some name its temporary tables
            for name, text in own.functions().items():
                try:
                    async with connection.transaction():
                        await connection.execute(text)  # check_function_bodies is on here
                except asyncpg.PostgresError as error:
                    yield f"postgres/functions/*.sql: {name}: {error}"
    finally:
        await connection.close()


if __name__ == "__main__":
    main()
