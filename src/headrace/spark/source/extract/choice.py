"""From options to an extract: the one place that knows which store is read how."""

from __future__ import annotations

import asyncio

from headrace.spark.source.extract.base import Extract
from headrace.spark.source.options import POSTGRES, SQLITE, SourceOptions


def extract_of(options: SourceOptions) -> Extract:
    """Loads nothing for stores that are not asked for."""
    if options.scheme in SQLITE:
        from headrace.spark.source.extract.sqlite import SqliteExtract

        return SqliteExtract(
            path=options.sqlite_path, where=options.where, predicates=options.predicates
        )
    if options.scheme in POSTGRES:
        from headrace.spark.source.extract.postgres import PostgresExtract
        from headrace.spark.source.extract.postgres_address import libpq_url
        from headrace.stores.postgres import opening
        from headrace.stores.postgres.sql import SCHEMA_DEFAULT

        found = opening.parse(options.url, schema=SCHEMA_DEFAULT, pool_size=1)
        return PostgresExtract(
            dsn=libpq_url(found.dsn),
            schema=found.schema,
            where=options.where,
            predicates=options.predicates,
        )
    from headrace.spark.source.extract.generic import GenericExtract

    return GenericExtract(url=options.url, predicates=options.predicates)


def check(options: SourceOptions) -> None:
    """Raises what is wrong with the store: it is not there, not ours, too old or too new."""

    async def look() -> None:
        from headrace.connect import open_store

        store = await open_store(options.url, create=False)
        await store.close()

    asyncio.run(look())
