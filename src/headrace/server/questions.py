"""Handlers of the routes of an operator's questions."""

from __future__ import annotations

import msgspec

from headrace import validation
from headrace.api import questions as api
from headrace.api.jobs import JobAnswer, ReasonAnswer, job_answer
from headrace.manager import ErrorGroups, Holders, JobGraph
from headrace.server.call import Call, Handlers

ATTEMPTS_MAX = 1000


async def attempts(call: Call[api.AttemptsQuery, None]) -> api.AttemptsAnswer:
    limit = validation.check_limit(call.query.limit, "limit", maximum=ATTEMPTS_MAX)
    contents = call.access.sees_contents
    found = await call.manager.attempts(call["job_id"], limit=limit)
    return api.AttemptsAnswer(
        attempts=tuple(api.attempt_answer(one, contents=contents) for one in found)
    )


async def graph(call: Call[api.GraphQuery, None]) -> JobGraph:
    query = call.query
    return await call.manager.graph(call["job_id"], depth=query.depth, nodes_max=query.nodes_max)


async def explain_queue(call: Call[None, None]) -> api.QueueExplanationAnswer:
    found = await call.manager.explain_queue(call["queue"])
    return api.QueueExplanationAnswer(
        queue=found.queue,
        at=found.at,
        ready=found.ready,
        delayed=found.delayed,
        blocked=found.blocked,
        running=found.running,
        waited_seconds=found.waited_seconds,
        reasons=tuple(
            ReasonAnswer(why=one.why, message=one.message, facts=one.facts) for one in found.reasons
        ),
    )


async def holders(call: Call[api.HoldersQuery, None]) -> Holders:
    return await call.manager.holders(call["queue"], limit=call.query.limit)


async def history(call: Call[api.HistoryQuery, None]) -> api.HistoryAnswer:
    query = call.query
    found = await call.manager.history(
        query.since, query.until, queues=query.queue, minutes=query.minutes
    )
    return api.HistoryAnswer(
        since=found.since,
        until=found.until,
        bucket_seconds=found.bucket_seconds,
        counted_until=found.counted_until,
        buckets=tuple(
            api.BucketAnswer(at=one.at, counts=api.counts_answer(one.counts))
            for one in found.buckets
        ),
    )


async def errors(call: Call[api.ErrorsQuery, None]) -> ErrorGroups:
    query = call.query
    found = await call.manager.error_groups(
        query.since, query.until, queues=query.queue, types=query.type, limit=query.limit
    )
    contents = call.access.sees_contents
    groups = tuple(api.group_answer(one, contents=contents) for one in found.groups)
    return msgspec.structs.replace(found, groups=groups)


async def upcoming(call: Call[api.UpcomingQuery, None]) -> api.UpcomingAnswer:
    return api.UpcomingAnswer(
        ticks=await call.manager.upcoming(call.query.count, name=call.query.name)
    )


async def run_schedule(call: Call[None, None]) -> JobAnswer:
    job = await call.manager.run_schedule(call["name"])
    return job_answer(job, contents=call.access.sees_contents)


async def cursor_at(call: Call[api.CursorQuery, None]) -> api.CursorAnswer:
    return api.CursorAnswer(cursor=await call.manager.cursor_at(call.query.at))


HANDLERS: Handlers = {
    api.ATTEMPTS: attempts,
    api.GRAPH: graph,
    api.EXPLAIN_QUEUE: explain_queue,
    api.HOLDERS: holders,
    api.HISTORY: history,
    api.ERRORS: errors,
    api.UPCOMING: upcoming,
    api.RUN_SCHEDULE: run_schedule,
    api.CURSOR_AT: cursor_at,
}
