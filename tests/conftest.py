"""What all tests share: an empty store of every kind, by url."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.scheduling import OneSparkProcess
from tests.stores.postgres.server import Schemas, running
from tests.stores.redis import server as redis_server

pytest.register_assert_rewrite("headrace.testing.conformance")

# A busy machine is not a defect: how long an example takes says nothing about the rule it checks.
settings.register_profile("headrace", deadline=None)
settings.load_profile("headrace")

STORES = ("memory", "sqlite", "postgresql", "redis")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """What a test printed or logged travels between processes as UTF-8: some log what is no text at all."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    report.sections = [(name, _encodable(text)) for name, text in report.sections]
    if isinstance(report.longrepr, str):
        report.longrepr = _encodable(report.longrepr)
    elif report.longrepr is not None and str(report.longrepr) != _encodable(str(report.longrepr)):
        report.longrepr = _encodable(str(report.longrepr))
    return report  # type: ignore[return-value]


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> OneSparkProcess:
    return OneSparkProcess(config, log)


@pytest.fixture(scope="session")
def postgres_schemas() -> Iterator[Schemas]:
    """On a server that does not wait for the disk: these are tests of logic."""
    with running(durable=False) as url:
        schemas = Schemas(url)
        yield schemas
        asyncio.run(schemas.drop_all())


@pytest.fixture(scope="session", autouse=True)
def nothing_stays_on_redis() -> Iterator[None]:
    yield
    asyncio.run(redis_server.delete_made())


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The url of an empty store; a test that asks for it runs once per store."""
    match request.param:
        case "memory":
            yield "memory:"
        case "sqlite":
            # Durability is proven elsewhere: here nothing needs to wait for the disk.
            yield f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=normal"
        case "postgresql":
            schemas: Schemas = request.getfixturevalue("postgres_schemas")
            url = schemas.take()
            yield url
            asyncio.run(schemas.give_back(url))
        case "redis":
            yield redis_server.fresh_url()
        case unknown:
            raise AssertionError(unknown)
