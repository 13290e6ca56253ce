"""Handlers of the routes of whoever runs the store: tokens, readers of the log, upkeep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import msgspec

from headrace import validation
from headrace.api import administration as api
from headrace.api.jobs import job_answer
from headrace.api.queues import RemovedAnswer
from headrace.manager import Changed, Maintained
from headrace.server.call import Call, Handlers
from headrace.tokens import Token


async def tokens(call: Call[None, None]) -> api.TokensAnswer:
    return api.TokensAnswer(tokens=tuple(_token(one) for one in await call.manager.list_tokens()))


async def create_token(call: Call[None, api.NewTokenBody]) -> api.NewTokenAnswer:
    body = call.body
    made = await call.manager.create_token(
        body.label, body.scopes, tenant=body.tenant, expires_at=body.expires_at
    )
    return api.NewTokenAnswer(**msgspec.structs.asdict(_token(made.token)), secret=made.secret)


async def revoke_token(call: Call[None, None]) -> api.RevokedAnswer:
    return api.RevokedAnswer(revoked=await call.manager.revoke_token(call["token_id"]))


async def doctor(call: Call[None, None]) -> api.DoctorAnswer:
    found = await call.manager.diagnose()
    return api.DoctorAnswer(
        findings=tuple(
            api.FindingAnswer(health=one.health, what=one.what, value=one.value, advice=one.advice)
            for one in found
        )
    )


async def readers(call: Call[None, None]) -> api.ReadersAnswer:
    answers = []
    for one in await call.manager.readers():
        lag = await call.manager.reader_lag(one)
        answers.append(
            api.ReaderAnswer(
                name=one.name,
                cursor=one.cursor,
                label=one.label,
                since=one.since,
                reached_at=one.reached_at,
                events_behind=lag.events,
            )
        )
    return api.ReadersAnswer(readers=tuple(answers))


async def forget_reader(call: Call[None, None]) -> RemovedAnswer:
    return RemovedAnswer(removed=await call.manager.forget_reader(call["name"]))


async def maintain(call: Call[api.UpkeepQuery, None]) -> api.UpkeepAnswer:
    step = validation.check_word(call["step"], api.Upkeep)
    limit, manager = call.query.limit, call.manager
    match step:
        case api.Upkeep.REAP:
            return _changed(call, step, await manager.reap(limit))
        case api.Upkeep.LIFETIMES:
            return _changed(call, step, await manager.end_lifetimes(limit))
        case api.Upkeep.SWEEP:
            count = await manager.sweep(limit)
        case api.Upkeep.SCHEDULES:
            count = len((await manager.fire_schedules(limit)).jobs)
        case api.Upkeep.RESTAMP:
            count = await manager.restamp()
        case api.Upkeep.CLEANUP:
            count = sum((await manager.cleanup(limit=limit)).values())
        case api.Upkeep.ALL:
            return api.UpkeepAnswer(done=_counts(await manager.maintain()))
        case _:
            assert_never(step)
    return api.UpkeepAnswer(done={step: count})


def _changed(call: Call[Any, Any], step: api.Upkeep, changed: Changed) -> api.UpkeepAnswer:
    contents = call.access.sees_contents
    return api.UpkeepAnswer(
        done={step: len(changed.jobs)},
        jobs=tuple(job_answer(job, contents=contents) for job in changed.jobs),
        freed=changed.freed,
    )


def _counts(done: Maintained) -> Mapping[str, int]:
    return {
        api.Upkeep.REAP: len(done.reaped.jobs),
        api.Upkeep.LIFETIMES: len(done.outlived.jobs),
        api.Upkeep.SWEEP: done.swept,
        api.Upkeep.SCHEDULES: len(done.fired.jobs),
        api.Upkeep.RESTAMP: done.restamped,
        api.Upkeep.CLEANUP: sum(done.deleted.values()),
    }


def _token(one: Token) -> api.TokenAnswer:
    names = api.TokenAnswer.__struct_fields__
    return api.TokenAnswer(**{name: getattr(one, name) for name in names})


HANDLERS: Handlers = {
    api.TOKENS: tokens,
    api.CREATE_TOKEN: create_token,
    api.REVOKE_TOKEN: revoke_token,
    api.DOCTOR: doctor,
    api.READERS: readers,
    api.FORGET_READER: forget_reader,
    api.MAINTAIN: maintain,
}
