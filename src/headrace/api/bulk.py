"""The routes of acts on many jobs, of who has done what by hand, and of writes that came too late."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, UnsetType

from headrace import errors
from headrace.api.jobs import WITHHELD
from headrace.api.route import V1, Route
from headrace.limits import Rate
from headrace.manager import AuditRow, Bulk, BulkAct
from headrace.manager.bulk_acts import Act, Where
from headrace.manager.refusals import RefusedWrites
from headrace.policy import CancelMode
from headrace.tokens import Scope


class BulkBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do to every job that matches. An empty filter is refused: it would mean every job."""

    act: Act
    where: Where
    rate: Rate | None = None
    """How fast it goes at most."""
    mode: CancelMode | None = None
    reason: str | None = None
    priority: int | None = None
    patch: msgspec.Raw | UnsetType = UNSET
    """Of a redrive: a JSON merge patch for each payload. Needs `submit` and `read:payload`, too."""
    dry_run: bool = False
    """Count what it would do, and do nothing."""
    expected: int | None = None


class BulkAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The act as it goes on or, of a dry run, what it would do."""

    act: BulkAct | None
    plan: Bulk | None


class BulkActsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    acts: tuple[BulkAct, ...]


def act_answer(act: BulkAct, *, contents: bool) -> BulkAct:
    if contents:
        return act
    groups = tuple(msgspec.structs.replace(one, message=_hidden(one.message)) for one in act.groups)
    where = msgspec.structs.replace(act.where, error=_hidden(act.where.error))
    return msgspec.structs.replace(act, groups=groups, where=where, error=_hidden(act.error))


def plan_answer(plan: Bulk, *, contents: bool) -> Bulk:
    if contents:
        return plan
    groups = tuple(
        msgspec.structs.replace(one, message=_hidden(one.message)) for one in plan.groups
    )
    return msgspec.structs.replace(plan, groups=groups)


def _hidden(message: str | None) -> str | None:
    return None if message is None else WITHHELD


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    since: datetime
    until: datetime | None = None
    actor: str | None = None
    act: str | None = None
    target: str | None = None
    limit: int = 100


class AuditAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Who has changed what by hand, the newest first."""

    rows: tuple[AuditRow, ...]


class RefusalsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    since: datetime
    job: str | None = None
    limit: int = 100


START = Route(
    name="start_bulk",
    method="POST",
    path=f"{V1}/bulk",
    summary="Cancel, redrive, delete or reprioritise every job that matches, or count what that would do.",
    scopes=(Scope.OPERATE,),
    body=BulkBody,
    answer=BulkAnswer,
    status=202,
    also=(200,),
    errors=(errors.EmptySelection,),
)
ACTS = Route(
    name="list_bulk_acts",
    method="GET",
    path=f"{V1}/bulk",
    summary="The acts that go on, and those that have ended lately.",
    scopes=(Scope.READ,),
    answer=BulkActsAnswer,
)
ACT = Route(
    name="get_bulk_act",
    method="GET",
    path=f"{V1}/bulk/{{act_id}}",
    summary="How far an act is.",
    scopes=(Scope.READ,),
    answer=BulkAct,
    errors=(errors.BulkActNotFound,),
)
CANCEL = Route(
    name="cancel_bulk_act",
    method="POST",
    path=f"{V1}/bulk/{{act_id}}/cancel",
    summary="Stop an act. What is done stays done.",
    scopes=(Scope.OPERATE,),
    answer=BulkAct,
    errors=(errors.BulkActNotFound,),
)
AUDIT = Route(
    name="list_audit",
    method="GET",
    path=f"{V1}/audit",
    summary="Who has changed what by hand.",
    scopes=(Scope.ADMIN,),
    query=AuditQuery,
    answer=AuditAnswer,
)
REFUSALS = Route(
    name="list_refused_writes",
    method="GET",
    path=f"{V1}/refusals",
    summary="What workers wanted to write of jobs that they did not hold any more.",
    scopes=(Scope.READ,),
    query=RefusalsQuery,
    answer=RefusedWrites,
)
ROUTES = (START, ACTS, ACT, CANCEL, AUDIT, REFUSALS)
