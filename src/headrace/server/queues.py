"""Handlers of the routes of queues and workers."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import msgspec

from headrace import validation
from headrace.api import queues as api
from headrace.api.jobs import job_answer
from headrace.limits import QueueLimits
from headrace.model import State
from headrace.server.call import Call, Handlers
from headrace.stores.base import Pause, Tally, WorkerSeen


async def stats(call: Call[api.StatsQuery, None]) -> api.StatsAnswer:
    found = await call.manager.stats(queues=call.query.queue, tags=call.query.tag)
    return api.StatsAnswer(
        total=found.total,
        states=found.states,
        ready=found.ready,
        delayed=found.delayed,
        failures=found.failures,
        tallies=tuple(_tally(one) for one in found.tallies),
    )


async def overview(call: Call[None, None]) -> api.OverviewAnswer:
    found = await call.manager.overview()
    return api.OverviewAnswer(
        at=found.at,
        tallies=tuple(_tally(one) for one in found.tallies),
        oldest_ready=tuple(
            api.OldestReady(tenant=tenant, queue=queue, seconds=seconds)
            for (tenant, queue), seconds in sorted(found.oldest_ready.items())
        ),
    )


async def queues(call: Call[None, None]) -> api.QueuesAnswer:
    found = await call.manager.overview()
    pauses = await call.manager.pauses()
    states: dict[str, Counter[State]] = {one.queue: Counter() for one in pauses}
    delayed: Counter[str] = Counter()
    for tally in found.tallies:
        states.setdefault(tally.queue, Counter())[tally.state] += tally.jobs
        delayed[tally.queue] += tally.delayed
    oldest: dict[str, float] = {}
    for (_, queue), seconds in found.oldest_ready.items():
        oldest[queue] = max(oldest.get(queue, 0.0), seconds)
    return api.QueuesAnswer(
        at=found.at,
        queues=tuple(
            api.QueueAnswer(
                queue=name,
                states=states[name],
                delayed=delayed[name],
                oldest_ready_seconds=oldest.get(name),
                pauses=tuple(_pause(one) for one in pauses if one.queue == name),
            )
            for name in sorted(states)
        ),
    )


async def pause(call: Call[None, None]) -> None:
    await call.manager.pause(call["queue"])


async def resume(call: Call[None, None]) -> api.ResumedAnswer:
    return api.ResumedAnswer(resumed=await call.manager.resume(call["queue"]))


async def pauses(call: Call[None, None]) -> tuple[api.PauseAnswer, ...]:
    return tuple(_pause(one) for one in await call.manager.pauses())


async def all_limits(call: Call[None, None]) -> api.LimitsAnswer:
    found = await call.manager.limits()
    return api.LimitsAnswer(limits={name: _limits(one) for name, one in found.items()})


async def limits(call: Call[None, None]) -> api.LimitsBody:
    queue = call["queue"]
    found = await call.manager.limits(queue)
    return _limits(found[queue]) if queue in found else api.LimitsBody()


async def set_limits(call: Call[None, api.LimitsBody]) -> None:
    await call.manager.set_limits(call["queue"], QueueLimits(**msgspec.structs.asdict(call.body)))


async def remove_limits(call: Call[None, None]) -> api.RemovedAnswer:
    return api.RemovedAnswer(removed=await call.manager.remove_limits(call["queue"]))


async def workers(call: Call[api.WorkersQuery, None]) -> api.WorkersAnswer:
    seconds = validation.check_seconds(call.query.seconds, "seconds")
    since = call.manager.clock.now() - timedelta(seconds=seconds)
    return api.WorkersAnswer(
        workers=tuple(_worker(one) for one in await call.manager.workers(since))
    )


async def expire_worker(call: Call[None, None]) -> api.ExpiredAnswer:
    changed = await call.manager.expire_worker(call["worker"])
    contents = call.access.sees_contents
    return api.ExpiredAnswer(
        jobs=tuple(job_answer(job, contents=contents) for job in changed.jobs), freed=changed.freed
    )


def _tally(one: Tally) -> api.TallyAnswer:
    names = api.TallyAnswer.__struct_fields__
    return api.TallyAnswer(**{name: getattr(one, name) for name in names})


def _pause(one: Pause) -> api.PauseAnswer:
    return api.PauseAnswer(queue=one.queue, tenant=one.tenant, since=one.since)


def _limits(one: QueueLimits) -> api.LimitsBody:
    names = api.LimitsBody.__struct_fields__
    return api.LimitsBody(**{name: getattr(one, name) for name in names})


def _worker(one: WorkerSeen) -> api.WorkerAnswer:
    return api.WorkerAnswer(
        worker=one.worker,
        seen_at=one.seen_at,
        tenant=one.tenant,
        queues=None if one.queues is None else tuple(one.queues),
        types=None if one.types is None else tuple(one.types),
        tags=tuple(one.tags),
        slots=one.slots,
        busy=one.busy,
        process=one.process,
    )


HANDLERS: Handlers = {
    api.STATS: stats,
    api.OVERVIEW: overview,
    api.QUEUES: queues,
    api.PAUSE: pause,
    api.RESUME: resume,
    api.PAUSES: pauses,
    api.ALL_LIMITS: all_limits,
    api.LIMITS: limits,
    api.SET_LIMITS: set_limits,
    api.REMOVE_LIMITS: remove_limits,
    api.WORKERS: workers,
    api.EXPIRE_WORKER: expire_worker,
}
