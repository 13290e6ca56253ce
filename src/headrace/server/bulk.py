"""Handlers of the routes of acts on many jobs, of the audit, and of refused writes."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from headrace.api import bulk as api
from headrace.errors import InvalidRequest
from headrace.manager import BulkAct
from headrace.manager.refusals import RefusedWrites
from headrace.server.call import Call, Handlers, Reply
from headrace.server.jobs import check_may_change_payloads


async def start(call: Call[None, api.BulkBody]) -> Reply:
    body, contents = call.body, call.access.sees_contents
    where = body.where.matching()
    if body.dry_run:
        plan = await call.manager.plan_bulk(body.act, where, priority=body.priority)
        told = api.plan_answer(plan, contents=contents)
        return Reply(api.BulkAnswer(act=None, plan=told), status=200)
    act = await call.manager.start_bulk(
        body.act,
        where,
        rate=body.rate,
        mode=body.mode,
        reason=body.reason,
        priority=body.priority,
        patch=_patch(call, body.patch),
        expected=body.expected,
    )
    place = f"{call.root_path}{api.ACT.address(act_id=act.id)}"
    answer = api.BulkAnswer(act=_told(call, act), plan=None)
    return Reply(answer, headers=(("Location", place),))


def _patch(call: Call[Any, Any], patch: msgspec.Raw | UnsetType) -> Any:
    if isinstance(patch, UnsetType):
        return UNSET
    check_may_change_payloads(call)
    try:
        return msgspec.json.decode(patch)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"the patch is not JSON: {error}; nothing was changed") from error


async def acts(call: Call[None, None]) -> api.BulkActsAnswer:
    return api.BulkActsAnswer(
        acts=tuple(_told(call, one) for one in await call.manager.bulk_acts())
    )


async def act(call: Call[None, None]) -> BulkAct:
    return _told(call, await call.manager.bulk_act(call["act_id"]))


async def cancel(call: Call[None, None]) -> BulkAct:
    return _told(call, await call.manager.cancel_bulk(call["act_id"]))


def _told(call: Call[Any, Any], one: BulkAct) -> BulkAct:
    return api.act_answer(one, contents=call.access.sees_contents)


async def audit(call: Call[api.AuditQuery, None]) -> api.AuditAnswer:
    query = call.query
    rows = await call.manager.audit(
        query.since,
        query.until,
        actor=query.actor,
        act=query.act,
        target=query.target,
        limit=query.limit,
    )
    return api.AuditAnswer(rows=rows)


async def refusals(call: Call[api.RefusalsQuery, None]) -> RefusedWrites:
    query = call.query
    return await call.manager.refused_writes(query.since, job_id=query.job, limit=query.limit)


HANDLERS: Handlers = {
    api.START: start,
    api.ACTS: acts,
    api.ACT: act,
    api.CANCEL: cancel,
    api.AUDIT: audit,
    api.REFUSALS: refusals,
}
