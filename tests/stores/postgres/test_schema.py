"""Creating the schema, bringing an old one up to date, and leaving alone what is not ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import asyncpg
import pytest

from headrace.errors import (
    InvalidInput,
    SchemaTooNew,
    SchemaTooOld,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from headrace.stores.base import EventQuery, WorkerSeen
from headrace.stores.postgres import PostgresStore, schema
from headrace.stores.postgres import sql as sql_module
from headrace.stores.postgres.sql import Sql
from tests.stores.postgres.jobs import NOW, draft, insert, request
from tests.stores.postgres.server import Schemas, with_options

NAME = 'odd "name" é'


@pytest.fixture
async def connection(postgres_schemas: Schemas) -> AsyncIterator[asyncpg.Connection]:
    opened = await asyncpg.connect(postgres_schemas.url)
    await opened.execute(f"DROP SCHEMA IF EXISTS {Sql(NAME).quoted_schema} CASCADE")
    yield opened
    await opened.execute(f"DROP SCHEMA IF EXISTS {Sql(NAME).quoted_schema} CASCADE")
    await opened.close()


@pytest.fixture
def url(postgres_schemas: Schemas, connection: asyncpg.Connection) -> str:
    """A schema that is not there yet, with a name that must be quoted."""
    return with_options(postgres_schemas.url, schema=NAME)


async def test_the_first_to_open_it_creates_it(url: str) -> None:
    stores = await asyncio.gather(*(PostgresStore.open(url) for _ in range(5)))
    (job,) = await insert(stores[0], draft())
    assert [taken.id for taken in await stores[1].claim(request())] == [job.id]
    for store in stores:
        await store.close()


async def test_it_is_not_created_against_orders(url: str) -> None:
    with pytest.raises(StoreUnavailable, match=r"holds no Headrace schema.*headrace migrate"):
        await PostgresStore.open(url, create=False)


_DESCRIPTIONS = (
    """
    SELECT relname, attname, format_type(atttypid, atttypmod), attnotnull, atthasdef
    FROM pg_attribute INNER JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace = to_regnamespace($1) AND attnum > 0 AND NOT attisdropped ORDER BY 1, 2
    """,
    """
    SELECT conname, conrelid::regclass, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = to_regnamespace($1) ORDER BY 1, 2
    """,
    """
    SELECT pg_get_indexdef(indexrelid) FROM pg_index INNER JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relnamespace = to_regnamespace($1) ORDER BY relname
    """,
    """
    SELECT relname, pg_get_viewdef(oid) FROM pg_class
    WHERE relnamespace = to_regnamespace($1) AND relkind = 'v' ORDER BY 1
    """,
    """
    SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = to_regnamespace($1)
    ORDER BY proname
    """,
)
"""Columns, constraints, indexes, views and functions of a schema."""


def _nameless(text: str, sql: Sql) -> str:
    return text.replace(sql.quoted_schema, "headrace").replace(sql.schema, "headrace")


_SECOND = "ALTER TABLE headrace.workers ADD COLUMN made_up integer NOT NULL DEFAULT 7;"


@pytest.fixture
def second_step(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Called: from now on this Headrace knows a second migration. There is only one as yet."""

    def step(text: str = _SECOND, *, works_with: int = 1) -> None:
        migrations = (*sql_module._migrations()[:1], text)
        monkeypatch.setattr(sql_module, "_migrations", lambda: migrations)
        monkeypatch.setattr(schema, "LATEST_SCHEMA_VERSION", 2)
        monkeypatch.setattr(schema, "WORKS_WITH", works_with)

    return step


@pytest.mark.parametrize("works_with", [1, 2])
async def test_an_older_version_is_brought_up_to_date_when_told_to(
    url: str,
    connection: asyncpg.Connection,
    second_step: Callable[..., None],
    works_with: int,
) -> None:
    sql = Sql(NAME)
    old = await PostgresStore.open(url)
    (job,) = await insert(old, draft(tags=("a",)))
    await old.announce(WorkerSeen(worker="old", seen_at=NOW))
    before = await old.events(EventQuery())
    second_step(works_with=works_with)
    wanted = "has schema version 1.*left untouched.*headrace migrate"
    with pytest.raises(SchemaTooOld, match=wanted) as caught:
        await PostgresStore.open(url)
    assert caught.value.version == 1
    assert ("may go on meanwhile" in str(caught.value)) == (works_with == 1)
    assert await schema.version_of(connection, sql, "here") == 1

    opened = await asyncio.gather(*(PostgresStore.open(url, migrate=True) for _ in range(3)))
    assert await schema.version_of(connection, sql, "here") == 2
    assert await opened[0].schema_version() == 2
    added = await connection.fetchval(f"SELECT made_up FROM {sql.quoted_schema}.workers")
    assert added == 7
    assert await opened[0].events(EventQuery()) == before
    # Who had it open before goes on: a step that only adds takes nothing from it.
    (more,) = await insert(old, draft())
    assert [one.id for one in await old.claim(request(2))] == [job.id, more.id]
    for store in (old, *opened):
        await store.close()


async def test_an_upgraded_schema_equals_a_new_one(
    url: str,
    connection: asyncpg.Connection,
    postgres_schemas: Schemas,
    second_step: Callable[..., None],
) -> None:
    await (await PostgresStore.open(url)).close()
    second_step()
    await (await PostgresStore.open(url, migrate=True)).close()
    new = Sql("made_new")
    try:
        await (await PostgresStore.open(postgres_schemas.url, schema=new.schema)).close()
        for described in _DESCRIPTIONS:
            upgraded, made = [
                [
                    tuple(_nameless(str(part), found) for part in row)
                    for row in await connection.fetch(described, found.quoted_schema)
                ]
                for found in (Sql(NAME), new)
            ]
            assert upgraded == made != []
    finally:
        await connection.execute("DROP SCHEMA IF EXISTS made_new CASCADE")


async def test_a_failed_step_changes_nothing(
    url: str, connection: asyncpg.Connection, second_step: Callable[..., None]
) -> None:
    await (await PostgresStore.open(url)).close()
    second_step(_SECOND + " CREATE TABLE headrace.workers (in_the_way integer);")
    with pytest.raises(StoreError, match="workers"):
        await PostgresStore.open(url, migrate=True)
    sql = Sql(NAME)
    assert await schema.version_of(connection, sql, "here") == 1
    assert not await connection.fetch(
        "SELECT FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = 'made_up'",
        f"{sql.quoted_schema}.workers",
    )


SIGNATURES = Path(__file__).parent / "signatures.txt"


def test_a_function_of_this_name_keeps_its_signature() -> None:
    """Workers of the last version call the functions of this one while it is rolled out.

    So what a function takes and gives never changes: the changed one gets a new name, and a line of its own
    here. A line goes when a migration drops the function.
    """
    kept = dict(line.split(": ", 1) for line in SIGNATURES.read_text("utf-8").splitlines())
    present = {
        one.name: f"({one.parameters}) -> {one.result}" for one in sql_module.signatures().values()
    }
    assert present == kept, "give the function a new name: name_2, then name_3"


async def _functions(connection: asyncpg.Connection, sql: Sql) -> dict[str, str]:
    rows = await connection.fetch(
        "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = to_regnamespace($1)",
        sql.quoted_schema,
    )
    return dict(rows)


async def _as_of_another_commit(connection: asyncpg.Connection, sql: Sql) -> None:
    """The present version, with another body, another result, and one function that is gone by now."""
    in_schema = sql.quoted_schema
    await connection.execute(
        f"""
        DROP FUNCTION {in_schema}.log_cuts;
        CREATE FUNCTION {in_schema}.log_cuts() RETURNS integer LANGUAGE sql AS 'SELECT 1';
        CREATE FUNCTION {in_schema}.claim_jobs_before() RETURNS integer LANGUAGE sql AS 'SELECT 2';
        ALTER TABLE {in_schema}.schema_version
            DROP COLUMN functions, DROP COLUMN functions_by, DROP COLUMN works_with;
        """
    )


@pytest.mark.parametrize("migrate", [True, False])
async def test_functions_of_another_commit_give_way_to_the_present_ones(
    url: str, connection: asyncpg.Connection, migrate: bool
) -> None:
    """By opening it and by headrace migrate; who has it open goes on, and so do older names."""
    sql = Sql(NAME)
    running = await PostgresStore.open(url)
    wanted = await _functions(connection, sql)
    await _as_of_another_commit(connection, sql)
    assert await _functions(connection, sql) != wanted
    mended = await PostgresStore.open(url, migrate=migrate)
    found = await _functions(connection, sql)
    assert found.pop("claim_jobs_before") == "SELECT 2"
    assert found == wanted
    (job,) = await insert(running, draft())
    assert [one.id for one in await running.claim(request())] == [job.id]
    for store in (running, mended):
        await store.close()


async def test_many_that_open_it_at_once_renew_the_functions_once(
    url: str, connection: asyncpg.Connection
) -> None:
    sql = Sql(NAME)
    await (await PostgresStore.open(url)).close()
    await _as_of_another_commit(connection, sql)
    stores = await asyncio.gather(*(PostgresStore.open(url) for _ in range(5)))
    await insert(stores[0], draft())
    assert len(await stores[4].claim(request())) == 1
    for store in stores:
        await store.close()


async def test_an_older_headrace_leaves_the_functions_of_a_newer_one(
    url: str, connection: asyncpg.Connection
) -> None:
    """While a version is rolled out, programs of both open the database."""
    sql = Sql(NAME)
    await (await PostgresStore.open(url)).close()
    await connection.execute(
        f"UPDATE {sql.quoted_schema}.schema_version SET functions = 'x', functions_by = '99.1'"
    )
    await (await PostgresStore.open(url, migrate=True)).close()
    kept = await connection.fetchval(f"SELECT functions FROM {sql.quoted_schema}.schema_version")
    assert kept == "x"


async def test_a_role_that_may_not_replace_them_says_who_may(
    url: str, connection: asyncpg.Connection
) -> None:
    sql = Sql(NAME)
    await (await PostgresStore.open(url)).close()
    if "//postgres@" not in url:
        pytest.skip("only a server of our own is given another role")
    await _as_of_another_commit(connection, sql)
    await connection.execute(
        f"""
        CREATE ROLE "Reader" LOGIN;
        GRANT USAGE ON SCHEMA {sql.quoted_schema} TO "Reader";
        GRANT SELECT ON ALL TABLES IN SCHEMA {sql.quoted_schema} TO "Reader";
        """
    )
    try:
        with pytest.raises(SchemaTooOld, match=r"may not replace them.*headrace migrate"):
            await PostgresStore.open(url.replace("//postgres@", "//Reader@"))
    finally:
        await connection.execute('DROP OWNED BY "Reader"; DROP ROLE "Reader"')


async def test_a_newer_schema_is_left_alone(url: str, connection: asyncpg.Connection) -> None:
    await (await PostgresStore.open(url)).close()
    await connection.execute(
        f"UPDATE {Sql(NAME).quoted_schema}.schema_version SET version = 99, works_with = 98"
    )
    with pytest.raises(SchemaTooNew, match="version 99"):
        await PostgresStore.open(url, migrate=True)


async def test_a_newer_schema_that_only_added_something_is_worked_with(
    url: str, connection: asyncpg.Connection
) -> None:
    await (await PostgresStore.open(url)).close()
    await connection.execute(f"UPDATE {Sql(NAME).quoted_schema}.schema_version SET version = 99")
    store = await PostgresStore.open(url)
    await insert(store, draft())
    assert len(await store.claim(request())) == 1
    await store.close()


async def test_a_schema_of_somebody_else_is_left_alone(
    url: str, connection: asyncpg.Connection
) -> None:
    await connection.execute(f"CREATE SCHEMA {Sql(NAME).quoted_schema}")
    await connection.execute(f"CREATE TABLE {Sql(NAME).quoted_schema}.jobs (theirs text)")
    with pytest.raises(StoreCorrupt, match="not Headrace's"):
        await PostgresStore.open(url, migrate=True)


@pytest.mark.parametrize(
    "options", [{"schema": ""}, {"schema": "pg_x"}, {"schema": "x" * 41}, {"pool_size": "0"}]
)
async def test_bad_options_are_refused(postgres_schemas: Schemas, options: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        await PostgresStore.open(with_options(postgres_schemas.url, **options))


@pytest.mark.parametrize("name", ["it's", "a$$b", "a$b", "a\\b"])
async def test_a_name_that_would_break_the_functions_is_refused_before_anything_is_made(
    postgres_schemas: Schemas, connection: asyncpg.Connection, name: str
) -> None:
    wanted = r"printable characters.*without ' \$ or \\.*nothing was changed"
    with pytest.raises(InvalidInput, match=wanted):
        await PostgresStore.open(with_options(postgres_schemas.url, schema=name))
    with pytest.raises(InvalidInput, match=wanted):
        await PostgresStore.open(postgres_schemas.url, schema=name)
    found = "SELECT FROM pg_namespace WHERE nspname = $1"
    assert await connection.fetch(found, name) == []
