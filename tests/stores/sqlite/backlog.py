"""A large backlog in a short time: copies of one stored job, made by SQLite itself."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from headrace.model import Job
from headrace.stores.sqlite import SqliteStore
from tests.stores.sqlite.samples import insert, new_job

COPY = """
    WITH RECURSIVE copies (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < :copies)
"""


async def fill(path: Path, copies: int, *, tag_every: int = 0, **fields: Any) -> Job:
    """Store one job and that many copies of it; every so manyth of them has the tag `rare`."""
    store = await SqliteStore.open(path, synchronous="normal")
    (job,) = await insert(store, new_job(**fields))
    await store.close()
    await asyncio.to_thread(_copy, path, job, copies, tag_every)
    return job


def _copy(path: Path, job: Job, copies: int, tag_every: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        names = [row[1] for row in connection.execute("PRAGMA table_info(jobs)")]
        values = ", ".join(
            {
                "seq": "seq + n",
                "id": "id || '-' || n",
                "run_at": "run_at + n % 997",
                "tags": """CASE WHEN :every AND n % :every = 0 THEN '["rare"]' ELSE tags END""",
            }.get(name, name)
            for name in names
        )
        bound = {"copies": copies, "every": tag_every, "seq": job.seq}
        for statement in (
            f"INSERT INTO jobs {COPY} SELECT {values} FROM jobs CROSS JOIN copies WHERE seq = :seq",
            f"INSERT INTO payloads {COPY} SELECT :seq + n, x'6e756c6c' FROM copies",
            """INSERT INTO job_tags SELECT 'rare', seq FROM jobs
               WHERE seq > :seq AND tags = '["rare"]'""",
            """INSERT INTO ready_tags SELECT 'rare', lane, run_at, seq FROM jobs
               WHERE seq > :seq AND tags = '["rare"]'""",
            """UPDATE lanes SET pending = pending + :copies
               WHERE id = (SELECT lane FROM jobs WHERE seq = :seq)""",
        ):
            connection.execute(statement, bound)
        connection.commit()
