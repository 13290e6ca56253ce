"""A lake at s3://, on a server of the tests' own that refuses every twentieth request."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.spark import pipeline
from headrace.spark.lake import upkeep
from headrace.spark.lake.delta import Folder, LakeBusy
from headrace.spark.lake.storage import storage_of
from tests.spark.lakes import assert_exact, assert_gold_exact, happen, take
from tests.spark.test_lake import KINDS, history, rows_of_kinds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SERVER = Path(__file__).with_name("s3_server.py")
REFUSED = 20

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, str]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, str(SERVER), str(port), str(REFUSED)])
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert server.poll() is None
            time.sleep(0.05)
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }
    finally:
        server.kill()
        server.wait()


def test_batches_and_joined_files_are_exact_and_a_second_writer_is_refused(
    options: dict[str, str],
) -> None:
    lake = storage_of("s3://bucket/lake", options)
    folder = Folder(lake.within("t"), KINDS, ["day"])
    folder.prepare()
    base = folder.snapshot()
    folder.commit(base, folder.write(rows_of_kinds(1)))
    with pytest.raises(LakeBusy, match="another writer since version"):
        folder.commit(base, folder.write(rows_of_kinds(1)))
    assert folder.snapshot().rows == 4
    events = history(1, 200)
    for start in range(0, len(events), 20):
        take(lake, events[start : start + 20])
    assert_exact(lake, events)
    assert upkeep.compact(lake).tables
    assert upkeep.vacuum(lake, keep_hours=0)
    assert_exact(lake, events)
    assert "secret" not in repr(lake)


def test_the_pipeline_keeps_every_table_exact(
    spark: SparkSession, options: dict[str, str], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=normal"
    place = "s3://bucket/whole"
    happen(url, 3, 150)
    pipeline.run(url, place, spark=spark, storage_options=options)
    events = happen(url, 4, 100)
    done = pipeline.run(url, place, spark=spark, storage_options=options)
    assert 0 < done.events < len(events)
    lake = storage_of(place, options)
    assert_exact(lake, events)
    assert_gold_exact(lake, events)
    status = pipeline.status(place, url, storage_options=options)
    assert status.cursor == status.store_tail
    told = pipeline.history(place, events[0].job_id, storage_options=options)
    assert len(told) == sum(event.job_id == events[0].job_id for event in events)
