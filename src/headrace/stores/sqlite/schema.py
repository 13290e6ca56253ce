"""The schema's version, and how a file is brought to it."""

from __future__ import annotations

import sqlite3

from headrace.stores.sqlite.sql import migrations

APPLICATION_ID = 0x48647263
"""Marks a SQLite file as Headrace's ("Hdrc"), in the file's own header."""

_MIGRATIONS = migrations()

LATEST_SCHEMA_VERSION = len(_MIGRATIONS)


def version_of(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def application_of(connection: sqlite3.Connection) -> int:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    return int(application)


def is_empty(connection: sqlite3.Connection) -> bool:
    """No table, no view, nothing."""
    return connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is None


def upgrade(connection: sqlite3.Connection) -> None:
    """Apply the migrations that are missing. The caller holds the transaction: all or nothing."""
    for number, text in enumerate(_MIGRATIONS, start=1):
        if number > version_of(connection):
            for statement in _statements(text):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number:d}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")


def _statements(text: str) -> list[str]:
    """One by one, because `executescript` would commit the caller's transaction first."""
    statements: list[str] = []
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            statements.append(statement)
            statement = ""
    return statements
