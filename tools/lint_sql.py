"""Every statement that reaches a database, prepared by that database's own engine.

    python tools/lint_sql.py

Whether a test runs it or not: a name that is not there, a comma too many, or an index that is named and
cannot serve is found here. One function per store.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing

from headrace.stores.sqlite import bulk, schema, sql

_NAMED = re.compile(r":([a-z_]+)")


def main() -> None:
    problems = list(check_sqlite())
    for problem in problems:
        print(problem)
    print(f"SQLite: {len(sql.STATEMENTS)} statements prepared, {len(problems)} refused")
    sys.exit(bool(problems))


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


if __name__ == "__main__":
    main()
