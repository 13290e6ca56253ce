"""Handlers of the routes of whoever runs the store: tokens, readers of the log, upkeep."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from headrace import validation
from headrace.api import administration as api
from headrace.api.queues import RemovedAnswer
from headrace.manager import JobManager
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


async def _all(manager: JobManager) -> Mapping[str, int]:
    done = await manager.maintain()
    return {
        "reap": len(done.reaped.jobs),
        "lifetimes": len(done.outlived.jobs),
        "sweep": done.swept,
        "schedules": len(done.fired.jobs),
        "restamp": done.restamped,
        "cleanup": sum(done.deleted.values()),
    }


async def _reap(manager: JobManager) -> Mapping[str, int]:
    return {"reap": len((await manager.reap()).jobs)}


async def _lifetimes(manager: JobManager) -> Mapping[str, int]:
    return {"lifetimes": len((await manager.end_lifetimes()).jobs)}


async def _sweep(manager: JobManager) -> Mapping[str, int]:
    return {"sweep": await manager.sweep()}


async def _schedules(manager: JobManager) -> Mapping[str, int]:
    return {"schedules": len((await manager.fire_schedules()).jobs)}


async def _restamp(manager: JobManager) -> Mapping[str, int]:
    return {"restamp": await manager.restamp()}


async def _cleanup(manager: JobManager) -> Mapping[str, int]:
    return {"cleanup": sum((await manager.cleanup()).values())}


_STEPS: Mapping[api.Upkeep, Callable[[JobManager], Awaitable[Mapping[str, int]]]] = {
    api.Upkeep.ALL: _all,
    api.Upkeep.REAP: _reap,
    api.Upkeep.LIFETIMES: _lifetimes,
    api.Upkeep.SWEEP: _sweep,
    api.Upkeep.SCHEDULES: _schedules,
    api.Upkeep.RESTAMP: _restamp,
    api.Upkeep.CLEANUP: _cleanup,
}


async def maintain(call: Call[None, None]) -> api.UpkeepAnswer:
    step = validation.check_word(call["step"], api.Upkeep)
    return api.UpkeepAnswer(done=await _STEPS[step](call.manager))


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
