"""The extract for a url."""

from __future__ import annotations

from headrace.spark.source.extract.base import Extract
from headrace.spark.source.options import POSTGRES, SQLITE, SourceOptions


def extract_of(options: SourceOptions) -> Extract:
    """Loads nothing of the stores that are not asked for."""
    if options.scheme in SQLITE:
        from headrace.spark.source.extract.sqlite import SqliteExtract

        return SqliteExtract(
            path=options.sqlite_path, where=options.where, predicates=options.predicates
        )
    if options.scheme in POSTGRES:
        from headrace.spark.source.extract.postgres import PostgresExtract
        from headrace.stores.postgres import address

        found = address.parse(options.url, schema="headrace", pool_size=1)
        return PostgresExtract(
            dsn=found.dsn,
            schema=found.schema,
            where=options.where,
            predicates=options.predicates,
        )
    raise NotImplementedError(options.scheme)
