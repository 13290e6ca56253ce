"""Under the job model, the contract itself tells callback urls of a job's end: to a real receiver."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.clock import ManualClock
from headrace.contracts.job_model import Job, PermanentError, Queue, RetryConfig
from headrace.webhooks import new_secret, verify
from tests.webhooks.receiver import answers, running

LOOPBACK = ["127.0.0.0/8"]
SECRET = new_secret()


async def opened(url: str, clock: ManualClock, **options: Any) -> Queue:
    return await Queue.open(url, clock, callback_networks=LOOPBACK, **options)


async def claimed(queue: Queue) -> Job:
    job = await queue.claim("w")
    assert job is not None
    return job


async def test_a_callback_url_is_told_once_of_each_end(store_url: str) -> None:
    clock = ManualClock()
    with running() as receiver:
        async with await opened(store_url, clock, retry=RetryConfig(max_attempts=1)) as queue:
            ids = [await queue.submit(name, callback_url=receiver.url) for name in ("a", "b", "c")]
            await queue.submit("not told of")
            assert await queue.notify() == 0
            done = await claimed(queue)
            await queue.complete(done.id, done.token or "", {"sum": 3})
            failed = await claimed(queue)
            await queue.fail(failed.id, failed.token or "", PermanentError("bad row", code="E1"))
            await queue.cancel(ids[2])
            await queue.maintain()
            await queue.maintain()
    told = {request.json["data"]["id"]: request.json for request in receiver.requests}
    assert len(receiver.requests) == 3
    assert [told[job_id]["type"] for job_id in ids] == [
        "job.completed",
        "job.failed",
        "job.cancelled",
    ]
    assert told[ids[0]]["data"]["result"] == {"sum": 3}
    assert told[ids[1]]["data"]["error"]["code"] == "E1"


async def test_one_that_fails_is_tried_again_and_is_signed_if_there_is_a_secret(
    store_url: str,
) -> None:
    clock = ManualClock()
    with running(answers(503), answers(200)) as receiver:
        async with await opened(store_url, clock, callback_secrets=[SECRET]) as queue:
            job_id = await queue.submit("t", callback_url=receiver.url)
            job = await claimed(queue)
            await queue.complete(job_id, job.token or "")
            assert await queue.notify() == 1
            assert await queue.notify() == 0  # not due again yet
            clock.advance(60)
            assert await queue.notify() == 1
    first, second = receiver.requests
    message = verify(second.headers, second.body, [SECRET], clock.now())
    assert message == first.headers["webhook-id"]


async def test_the_url_of_the_end_counts(store_url: str) -> None:
    clock = ManualClock()
    with running() as old, running() as new:
        async with await opened(store_url, clock) as queue:
            moved = await queue.submit("moved", callback_url=old.url)
            await queue.update(moved, callback_url=new.url)
            late = await queue.submit("late")
            await queue.update(late, callback_url=new.url)
            gone = await queue.submit("gone", callback_url=old.url)
            await queue.update(gone, callback_url=None)
            for _ in range(3):
                job = await claimed(queue)
                await queue.complete(job.id, job.token or "")
            await queue.maintain()
            assert await queue.notify() == 0
    assert old.requests == []
    assert {request.json["data"]["id"] for request in new.requests} == {moved, late}


@pytest.mark.parametrize("networks", [[], ["10.0.0.0/8"]])
async def test_addresses_that_are_not_public_are_not_sent_to(networks: list[str]) -> None:
    clock = ManualClock()
    with running() as receiver:
        async with await Queue.open("memory:", clock, callback_networks=networks) as queue:
            job_id = await queue.submit("t", callback_url=receiver.url)
            await queue.complete(job_id, (await claimed(queue)).token or "")
            assert await queue.notify() == 1
    assert receiver.connections == 0
