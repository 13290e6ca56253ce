"""What jobs carry: rewritten in place while others look for them, and measured without being read."""

from __future__ import annotations

import asyncio
import random

from headrace import lifecycle
from headrace.model import Category, Failure, State
from headrace.stores.base import Backlog, Commit, Rewrite
from headrace.stores.postgres import PostgresStore
from tests.stores.postgres.jobs import NOW, draft, insert, request

LARGE = b'"%s"' % random.Random(1).randbytes(50_000).hex().encode()
"""So large, and so hard to compress, that it is stored out of line."""


async def test_a_claim_passes_over_a_job_that_is_being_rewritten(
    store: PostgresStore, postgres_url: str
) -> None:
    """Whoever claims it gets all of its new contents, never a mixture."""
    first, second = await insert(store, draft(), draft())
    other = await PostgresStore.open(postgres_url)
    async with store._pool.connection() as connection, connection.transaction():
        written = await store.on(connection).rewrite(
            [Rewrite(job_id=first.id, version=1, payload_json=b'"new"', checkpoint_json=b'"new"')]
        )
        assert list(written) == [True]
        (taken,) = await asyncio.wait_for(other.claim(request(2)), 5)
        assert taken.id == second.id
    (taken,) = await other.claim(request(2))
    assert (taken.id, taken.payload_json, taken.checkpoint_json) == (first.id, b'"new"', b'"new"')
    await other.close()


async def test_a_rewrite_waits_for_a_claim_and_then_leaves_the_job_alone(
    store: PostgresStore, postgres_url: str
) -> None:
    (job,) = await insert(store, draft())
    other = await PostgresStore.open(postgres_url)
    async with store._pool.connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        assert await store.on(connection).claim(request())
        rewriting = asyncio.create_task(
            other.rewrite([Rewrite(job_id=job.id, version=1, payload_json=b"2")])
        )
        await asyncio.sleep(0.1)
        assert not rewriting.done()
        await transaction.commit()
    assert list(await asyncio.wait_for(rewriting, 5)) == [False]
    assert (await store.get([job.id]))[job.id].payload_json == job.payload_json
    await other.close()


async def test_several_rewrites_of_one_job_all_count(store: PostgresStore) -> None:
    (job,) = await insert(store, draft())
    answers = await store.rewrite(
        [
            Rewrite(job_id=job.id, version=1, payload_json=b"1", log_json=b"1"),
            Rewrite(job_id=job.id, version=2, payload_json=b"2"),
            Rewrite(job_id=job.id, version=1, payload_json=b"3"),
            Rewrite(job_id="none", version=1, payload_json=b"4"),
        ]
    )
    assert list(answers) == [True, False, True, False]
    stored = (await store.get([job.id]))[job.id]
    assert (stored.payload_json, stored.log_json) == (b"3", b"1")
    assert await store.rewrite([]) == []


async def test_batches_of_rewrites_and_claims_never_wait_in_a_circle(
    store: PostgresStore, postgres_url: str
) -> None:
    jobs = await insert(store, *(draft() for _ in range(40)))
    other = await PostgresStore.open(postgres_url)
    batch = [Rewrite(job_id=job.id, version=1, payload_json=b"2", result_json=b"2") for job in jobs]
    answers = await asyncio.wait_for(
        asyncio.gather(
            *(store.rewrite(batch) for _ in range(5)),
            *(other.rewrite(batch[::-1]) for _ in range(5)),
        ),
        30,
    )
    assert all(all(written) for written in answers)
    await other.close()


async def test_a_message_that_cannot_be_stored_is_stored_as_well_as_can_be(
    store: PostgresStore,
) -> None:
    (job,) = await insert(store, draft())
    (taken,) = await store.claim(request())
    failing = lifecycle.Fail(
        token=taken.token, failure=Failure("old", Category.TEMPORARY), retry_at=NOW
    )
    assert all((await store.commit(Commit(changes=[lifecycle.apply(taken, failing, NOW)]))).applied)
    failed = (await store.get([job.id]))[job.id]
    await store.rewrite(
        [Rewrite(job_id=job.id, version=failed.version, failure_message="a\0b\ud800")]
    )
    stored = (await store.get([job.id]))[job.id]
    assert stored.failure is not None
    assert stored.failure.message == "a\ufffdb\ufffd"


async def test_the_backlog_is_summed_without_reading_large_payloads(store: PostgresStore) -> None:
    jobs = [draft(payload_json=LARGE), draft(payload_json=LARGE, state=State.BLOCKED), draft()]
    await insert(store, *jobs)
    async with store._pool.connection() as connection, connection.transaction():
        toast = await connection.fetchval(
            "SELECT indexrelid FROM pg_index JOIN pg_class ON reltoastrelid = indrelid"
            " WHERE pg_class.oid = $1::text::regclass",
            f"{store._sql.quoted_schema}.bodies",
        )
        read = "SELECT pg_stat_get_xact_tuples_fetched($1)"
        before = await connection.fetchval(read, toast)
        backlog = await store.on(connection).backlog()
        assert await connection.fetchval(read, toast) == before
        assert backlog == Backlog(3, 2 * len(LARGE) + len(jobs[2].payload_json))
        # The counter would tell.
        await store.on(connection).get([jobs[0].id])
        assert await connection.fetchval(read, toast) > before
