"""How SQLite goes about the hot queries, on a backlog: by the index meant for it, without sorting."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.model import Priority
from headrace.stores.sqlite import SqliteStore
from headrace.stores.sqlite.bulk import Bulk
from headrace.stores.sqlite.sql import query
from tests.stores.sqlite import samples
from tests.stores.sqlite.samples import NOW, complete, insert_many


async def seed(path: Path) -> None:
    """Ten thousand jobs in several lanes and states."""
    store = await SqliteStore.open(path, synchronous="normal")
    await insert_many(store, 4000, tags=("a", "b"))
    await insert_many(store, 4000, priority=Priority.HIGH, run_at=NOW + timedelta(days=1))
    await insert_many(store, 2000, queue="other", tenant="t2")
    await complete(store, await store.claim(samples.request(2000)))
    await store.claim(samples.request(500))
    await store.close()


@pytest.fixture(scope="module", params=["as it is", "analysed"])
def backlog(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[sqlite3.Connection]:
    """Somebody may have run ANALYZE: plans must not depend on it."""
    path = tmp_path_factory.mktemp("plans") / "jobs.db"
    asyncio.run(seed(path))
    with closing(sqlite3.connect(path)) as connection:
        if request.param == "analysed":
            connection.execute("ANALYZE")
        yield connection


def plan(connection: sqlite3.Connection, sql: str) -> str:
    names = set(re.findall(r":(\w+)", sql))
    parameters = dict.fromkeys(names, 1) if names else [1] * sql.count("?")
    steps = connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters).fetchall()
    return "\n".join(detail for *_, detail in steps)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (
            "claim_due",
            "SEARCH jobs USING COVERING INDEX jobs_ready (lane=? AND run_at>? AND run_at<?)",
        ),
        ("claim_heads", "SEARCH jobs USING COVERING INDEX jobs_ready (lane=?)"),
        ("claim_closed", "SEARCH records USING COVERING INDEX sqlite_autoindex_records_1 (kind=?)"),
        ("claim_lanes", "SCAN lanes USING INDEX lanes_claimable"),
        ("claim_lanes_of_queues", "SEARCH lanes USING INDEX lanes_claimable (queue=?)"),
        ("claim_queues", "SEARCH lanes USING INDEX lanes_claimable (queue>?)"),
        ("claim_tagged_due", "SEARCH ready_tags USING PRIMARY KEY (tag=? AND lane=?"),
        ("claim_tagged_due", "SEARCH job_tags USING PRIMARY KEY (tag=? AND seq=?)"),
        ("claim_tagged_heads", "SEARCH ready_tags USING PRIMARY KEY (tag=? AND lane=?)"),
        ("commit_versions", "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)"),
        ("count_delayed", "SEARCH jobs USING COVERING INDEX jobs_ready (lane=? AND run_at>?)"),
        ("edges_open", "SEARCH edges USING INDEX sqlite_autoindex_edges_1 (parent_id=?)"),
        ("edges_unseen", "SCAN edges USING INDEX edges_unseen"),
        ("events_lanes", "SEARCH lanes USING INDEX lanes_without_key (tenant=?)"),
        ("events", "SEARCH events USING INTEGER PRIMARY KEY (rowid>?)"),
        ("events_of_job", "SEARCH events USING INDEX events_of_job (job_seq=? AND rowid>?)"),
        ("trim_last", "SEARCH events USING INTEGER PRIMARY KEY (rowid<?)"),
        ("trim_events", "SEARCH events USING INTEGER PRIMARY KEY (rowid<?)"),
        ("trim_deleted", "SEARCH gone USING INTEGER PRIMARY KEY (rowid<?)"),
        ("trim_deleted", "SEARCH deleted_jobs USING PRIMARY KEY (id=? AND seq=?)"),
        (
            "trim_deleted",
            "SEARCH events USING COVERING INDEX events_of_job (job_seq=? AND rowid>?)",
        ),
        ("find_claimable", "SEARCH jobs USING COVERING INDEX jobs_ready (lane=?)"),
        ("find_ended", "SEARCH jobs USING COVERING INDEX jobs_ended (state=? AND finalized_at>?"),
        ("find_in_lanes", "SEARCH jobs USING COVERING INDEX jobs_of_lane (lane=?)"),
        ("find_leased", "SCAN jobs USING INDEX jobs_leased"),
        ("find_newest", "SEARCH jobs USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        ("find_oldest", "SEARCH jobs USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        ("find_tagged_newest", "SEARCH driver USING PRIMARY KEY (tag=? AND seq>? AND seq<?)"),
        ("find_tagged_oldest", "SEARCH driver USING PRIMARY KEY (tag=? AND seq>? AND seq<?)"),
        ("heads", "SEARCH jobs USING COVERING INDEX jobs_ready (lane=? AND run_at<?)"),
        ("heads_tagged", "SEARCH ready_tags USING PRIMARY KEY (tag=? AND lane=? AND run_at<?)"),
        ("held", "SCAN jobs USING INDEX jobs_leased"),
        ("next_due", "SEARCH jobs USING COVERING INDEX jobs_ready (lane=? AND run_at>?)"),
        (
            "key_holders",
            "SEARCH keys USING PRIMARY KEY (tenant=? AND queue=? AND type=? AND key=?)",
        ),
        (
            "lane_id",
            "lanes_by_key (tenant=? AND queue=? AND type=? AND priority=? AND limit_key=?)",
        ),
        ("lane_keys", "SEARCH lanes USING INTEGER PRIMARY KEY (rowid=?)"),
        ("lapsed", "SEARCH jobs USING INDEX jobs_leased (lease_until<?)"),
        ("outlived", "SEARCH jobs USING INDEX jobs_lifetime (expires_at>? AND expires_at<?)"),
    ],
)
def test_the_index_is_used(backlog: sqlite3.Connection, name: str, wanted: str) -> None:
    assert wanted in plan(backlog, query(name))


@pytest.mark.parametrize(
    "name",
    [
        "claim_due",
        "claim_heads",
        "claim_closed",
        "claim_lanes",
        "claim_lanes_of_queues",
        "claim_tagged_due",
        "claim_tagged_heads",
        "commit_versions",
        "count_delayed",
        "edges_open",
        "edges_unseen",
        "events",
        "find_newest",
        "find_oldest",
        "find_tagged_newest",
        "find_tagged_oldest",
        "heads",
        "heads_tagged",
        "next_due",
        "job_rows",
        "joins",
        "lapsed",
        "outlived",
    ],
)
def test_nothing_is_sorted_and_no_table_is_read_whole(
    backlog: sqlite3.Connection, name: str
) -> None:
    steps = plan(backlog, query(name))
    assert "TEMP B-TREE" not in steps
    assert not re.search(
        r"SCAN (jobs|lanes|events|edges|job_tags|ready_tags|records)$", steps, re.MULTILINE
    )


@pytest.mark.parametrize("size", [1, 64])
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (
            "edge_see",
            "SEARCH edges USING INDEX sqlite_autoindex_edges_1 (parent_id=? AND child_id=?)",
        ),
        ("edge_settle", "SEARCH edges USING INTEGER PRIMARY KEY (rowid=?)"),
        ("extend", "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)"),
        ("job_change", "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)"),
        ("job_tag_remove", "SEARCH job_tags USING PRIMARY KEY (tag=? AND seq=?)"),
        (
            "key_release",
            "SEARCH keys USING PRIMARY KEY (tenant=? AND queue=? AND type=? AND key=?)",
        ),
        ("key_remove", "SEARCH keys USING PRIMARY KEY (tenant=? AND queue=? AND type=? AND key=?)"),
        (
            "ready_tag_remove",
            "SEARCH ready_tags USING PRIMARY KEY (tag=? AND lane=? AND run_at=? AND seq=?)",
        ),
    ],
)
def test_writes_of_many_rows_find_each_by_its_key(
    backlog: sqlite3.Connection, name: str, wanted: str, size: int
) -> None:
    assert wanted in plan(backlog, Bulk(name)._texts[size])


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("job_change_one", "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)"),
        ("lane_remove", "SEARCH lanes USING INTEGER PRIMARY KEY (rowid=?)"),
        ("lane_move", "SEARCH lanes USING INTEGER PRIMARY KEY (rowid=?)"),
    ],
)
def test_writes_of_one_row_make_no_temporary_table(
    backlog: sqlite3.Connection, name: str, wanted: str
) -> None:
    assert plan(backlog, query(name)) == wanted
