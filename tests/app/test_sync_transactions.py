"""`app.sync.on(…)`: calls of tasks inside the transaction of a program without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pytest

from headrace import Headrace, State
from headrace.errors import InvalidInput, StoreError
from tests.stores.postgres.server import Schemas, without_schema

Transaction = Callable[[], Any]
"""A context manager: the connection to submit on. An exception rolls back."""


class Undone(Exception):
    """Raised in a transaction so that it is rolled back."""


def _psycopg(url: str) -> Iterator[Transaction]:
    psycopg: Any = import_module("psycopg")

    @contextmanager
    def begin() -> Iterator[Any]:
        with psycopg.connect(url) as connection, connection.transaction():
            yield connection

    yield begin


def _session(url: str) -> Iterator[Transaction]:
    sqlalchemy: Any = import_module("sqlalchemy")
    orm: Any = import_module("sqlalchemy.orm")
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    yield orm.sessionmaker(engine).begin
    engine.dispose()


def _scoped_session(url: str) -> Iterator[Transaction]:
    """As Flask programs have it: one object for all threads, a session for each."""
    sqlalchemy: Any = import_module("sqlalchemy")
    orm: Any = import_module("sqlalchemy.orm")
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    scoped = orm.scoped_session(orm.sessionmaker(engine))

    @contextmanager
    def begin() -> Iterator[Any]:
        with scoped.begin():
            yield scoped

    yield begin
    scoped.remove()
    engine.dispose()


def _django(url: str) -> Iterator[Transaction]:
    """`django.db.connection`, another for each thread that looks at it."""
    conninfo: Any = import_module("psycopg.conninfo")
    settings: Any = import_module("django.conf").settings
    parts = conninfo.conninfo_to_dict(url)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts["dbname"],
        "USER": parts.get("user", ""),
        "PASSWORD": parts.get("password", ""),
        "HOST": parts.get("host", ""),
        "PORT": parts.get("port", ""),
    }
    if not settings.configured:
        settings.configure(DATABASES={"default": database}, USE_TZ=True)
    db: Any = import_module("django.db")
    transaction: Any = import_module("django.db.transaction")

    @contextmanager
    def begin() -> Iterator[Any]:
        with transaction.atomic():
            yield db.connection

    yield begin
    db.connection.close()


KINDS = {
    "psycopg": _psycopg,
    "session": _session,
    "scoped session": _scoped_session,
    "django": _django,
}


@pytest.fixture
def url(postgres_schemas: Schemas) -> Iterator[str]:
    url = postgres_schemas.take()
    yield url
    asyncio.run(postgres_schemas.give_back(url))


@pytest.fixture(params=list(KINDS))
def transaction(request: pytest.FixtureRequest, url: str) -> Iterator[Transaction]:
    yield from KINDS[request.param](without_schema(url))


@pytest.fixture
def app(url: str) -> Iterator[Headrace]:
    app = Headrace(url)

    @app.task(queue="mail")
    def confirm(order: int) -> int:
        return order

    yield app
    app.sync.close()


def test_a_call_commits_with_the_transaction(app: Headrace, transaction: Transaction) -> None:
    with transaction() as connection:
        job = app.sync.on(connection).submit("confirm", order=7)
        assert list(app.sync.find()) == [], "nobody else sees it yet"
    found = app.sync.get(job)
    assert (found.state, found.queue, found.payload) == (State.PENDING, "mail", {"order": 7})


def test_a_call_vanishes_with_the_transaction(app: Headrace, transaction: Transaction) -> None:
    task = app.tasks["confirm"]
    with pytest.raises(Undone), transaction() as connection:  # noqa: PT012 - a transaction is a block
        app.sync.on(connection).submit_many([task.spec(order) for order in range(3)])
        raise Undone
    assert list(app.sync.find()) == []


def test_django_outside_of_a_transaction_is_refused(app: Headrace, url: str) -> None:
    for begin in _django(without_schema(url)):
        with begin():
            pass  # opens it; now it commits each statement by itself
        connection = import_module("django.db").connection
        with pytest.raises(StoreError, match="in no transaction"):
            app.sync.on(connection).submit("confirm", order=7)
        connection.close()
        with pytest.raises(InvalidInput, match=r"transaction\.atomic\(\)"):
            app.sync.on(connection).submit("confirm", order=7)
    assert list(app.sync.find()) == []


def test_other_stores_say_that_they_cannot(transaction: Transaction) -> None:
    app = Headrace("memory:")

    @app.task
    def confirm(order: int) -> int:
        return order

    with transaction() as connection, pytest.raises(InvalidInput, match="memory"):
        app.sync.on(connection).submit(confirm, 7)
    app.sync.close()
