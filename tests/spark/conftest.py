"""One Spark session for all tests here, and an empty store of every kind that Spark can see."""

from __future__ import annotations

import asyncio
import gc
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.stores.postgres.server import Schemas
from tests.stores.redis import server as redis_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DURABLE = ("sqlite", "postgresql", "redis")
HERE = Path(__file__).parent


def pytest_itemcollected(item: pytest.Item) -> None:
    if HERE in item.path.parents:
        # Spark leaves sockets and streams to the garbage collector.
        item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(scope="module", autouse=True)
def left_over() -> Iterator[None]:
    """What is left to the garbage collector goes here, not in the middle of somebody else's test."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """`local[2,3]`: two tasks at once, and a task that fails is tried three times, as on a cluster."""
    from headrace.spark import session

    folder = Path(tempfile.mkdtemp(prefix="headrace-spark-"))
    made = session(
        master="local[2,3]",
        app_name="headrace tests",
        config={
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.driver.memory": "1g",
            "spark.local.dir": str(folder),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        },
    )
    yield made
    made.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=DURABLE)
def durable_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The url of an empty store that other processes can open; once per kind."""
    match request.param:
        case "sqlite":
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
