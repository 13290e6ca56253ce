"""Creating the schema, bringing an old one up to date, and leaving alone what is not ours."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from datetime import timedelta

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
from headrace.stores.base import EventQuery, Fence, Note
from headrace.stores.postgres import LATEST_SCHEMA_VERSION, PostgresStore, schema
from headrace.stores.postgres.sql import Sql
from tests.stores.postgres.jobs import NOW, draft, insert, request
from tests.stores.postgres.server import Schemas, with_options

NAME = 'odd "name" é'

FUNCTIONS_PINNED = (
    8,
    "7156abcd9db0766d836c984d70a7dee04066f4555fa25dbbe47f39a6d5ac8c3e",
)
"""The number of migrations, and the digest of the functions that the last of them installs."""


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


@pytest.mark.parametrize("version", range(1, LATEST_SCHEMA_VERSION))
async def test_every_older_version_can_be_brought_up_to_date(
    url: str, connection: asyncpg.Connection, version: int
) -> None:
    sql = Sql(NAME)
    await schema.upgrade(connection, sql, "here", to_version=version)
    assert await schema.version_of(connection, sql, "here") == version
    wanted = f"has schema version {version}.*left untouched.*headrace migrate"
    with pytest.raises(SchemaTooOld, match=wanted) as caught:
        await PostgresStore.open(url)
    assert caught.value.version == version
    assert await schema.version_of(connection, sql, "here") == version

    opened = await asyncio.gather(*(PostgresStore.open(url, migrate=True) for _ in range(3)))
    assert await schema.version_of(connection, sql, "here") == LATEST_SCHEMA_VERSION
    assert await opened[0].schema_version() == LATEST_SCHEMA_VERSION
    await insert(opened[0], draft())
    assert len(await opened[0].claim(request())) == 1
    for store in opened:
        await store.close()


def test_the_functions_change_only_with_a_new_migration() -> None:
    digest = hashlib.sha256()
    for name, text in Sql("headrace").functions().items():
        digest.update(f"{name}\0{text}\0".encode())
    assert (LATEST_SCHEMA_VERSION, digest.hexdigest()) == FUNCTIONS_PINNED, (
        "functions are installed by migrations alone, and a database that has them all keeps the old "
        "functions: add a migration, which may hold nothing but a comment that says why, and put the "
        "number of migrations and the new digest into FUNCTIONS_PINNED"
    )


async def test_version_6_as_it_was_before_its_functions_changed_gets_the_present_ones(
    url: str, connection: asyncpg.Connection
) -> None:
    sql = Sql(NAME)
    await schema.upgrade(connection, sql, "here", to_version=6)
    await schema._drop_functions(connection, sql)
    await connection.execute(
        f"CREATE FUNCTION {sql.quoted_schema}.find_jobs() RETURNS integer LANGUAGE sql AS 'SELECT 1'"
    )
    await (await PostgresStore.open(url, migrate=True)).close()
    found = await connection.fetch(
        "SELECT proname FROM pg_proc WHERE pronamespace = to_regnamespace($1) ORDER BY proname",
        sql.quoted_schema,
    )
    assert [name for (name,) in found] == sorted(sql.functions())


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


async def test_an_upgraded_schema_equals_a_new_one(
    url: str, connection: asyncpg.Connection, postgres_url: str
) -> None:
    await schema.upgrade(connection, Sql(NAME), "here", to_version=1)
    await (await PostgresStore.open(url, migrate=True)).close()
    new = await PostgresStore.open(postgres_url)
    for described in _DESCRIPTIONS:
        upgraded, made = [
            [
                tuple(_nameless(str(part), found) for part in row)
                for row in await connection.fetch(described, found.quoted_schema)
            ]
            for found in (Sql(NAME), new._sql)
        ]
        assert upgraded == made != []
    await new.close()


_JOB_OF_EVERY_VERSION = """
INSERT INTO {schema}.lanes (tenant, queue, type, priority) VALUES ('default', 'default', 'send', 2);
INSERT INTO {schema}.bodies (seq, created_at, lane, depth, id, tags, payload)
VALUES (nextval('{schema}.job_seqs'), $$2026-01-01Z$$, 1, 0, 'old', '{{a}}', '1');
INSERT INTO {schema}.job_tags (tag, seq) VALUES ('a', 1);
INSERT INTO {schema}.ready_tags (tag, lane, early, run_at, seq) VALUES ('a', 1, TRUE, $$2026-01-01Z$$, 1);
INSERT INTO {schema}.jobs (
    seq, run_at, updated_at, lane, version, attempt, failures, losses, early, state, checkpoint
) VALUES (1, $$2026-01-01Z$$, $$2026-01-01Z$$, 1, 1, 0, 0, 0, TRUE, 'pending', '2');
INSERT INTO {schema}.events (
    at, run_at, job_seq, lane, version, attempt, failures, losses, payload_bytes, job_id, kind, after
) VALUES (
    $$2026-01-01Z$$, $$2026-01-01Z$$, 1, 1, 1, 0, 0, 0, 1, 'old', 'enqueued', 'pending'
);
"""


@pytest.mark.parametrize("version", range(1, LATEST_SCHEMA_VERSION))
async def test_what_an_older_version_holds_goes_on(
    url: str, connection: asyncpg.Connection, version: int
) -> None:
    sql = Sql(NAME)
    await schema.upgrade(connection, sql, "here", to_version=version)
    await connection.execute(_JOB_OF_EVERY_VERSION.format(schema=sql.quoted_schema))
    store = await PostgresStore.open(url, migrate=True)
    new = await insert(store, draft(tags=("a",)), draft(limit_key="k"))
    lanes = await connection.fetch(
        f"SELECT lane, count(*) FROM {sql.quoted_schema}.jobs GROUP BY lane ORDER BY lane"
    )
    assert [tuple(row) for row in lanes] == [(1, 2), (2, 1)]
    taken = await store.claim(request(9))
    assert [job.id for job in taken] == ["old", *(job.id for job in new)]
    old = taken[0]
    assert (old.limit_key, old.log_json, old.checkpoint_json) == (None, None, b"2")
    assert await store.annotate(Fence(old.id, old.token or ""), Note(log_json=b"[1]"), NOW)
    assert (await store.get(["old"]))["old"].log_json == b"[1]"

    log = await store.events(EventQuery())
    assert [event.job_id for event in log if event.kind == "enqueued"] == [job.id for job in taken]
    assert await store.events(EventQuery(job_id="old")) == [
        event for event in log if event.job_id == "old"
    ]
    for view, rows in (("event_log", 6), ("job_list", 3)):
        assert await connection.fetchval(f"SELECT count(*) FROM {sql.quoted_schema}.{view}") == rows
    assert await store.trim([log[0].cursor], NOW + timedelta(days=1), 10) == 1
    assert await store.events(EventQuery()) == log[1:]
    await store.close()


async def test_a_failed_step_changes_nothing(url: str, connection: asyncpg.Connection) -> None:
    sql = Sql(NAME)
    await schema.upgrade(connection, sql, "here", to_version=1)
    await connection.execute(f"CREATE TABLE {sql.quoted_schema}.workers (in_the_way integer)")
    with pytest.raises(StoreError, match="workers"):
        await PostgresStore.open(url, migrate=True)
    assert await schema.version_of(connection, sql, "here") == 1


async def test_a_newer_schema_is_left_alone(url: str, connection: asyncpg.Connection) -> None:
    await (await PostgresStore.open(url)).close()
    await connection.execute(f"UPDATE {Sql(NAME).quoted_schema}.schema_version SET version = 99")
    with pytest.raises(SchemaTooNew, match="version 99"):
        await PostgresStore.open(url, migrate=True)


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
