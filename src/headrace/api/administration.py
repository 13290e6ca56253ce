"""The routes of whoever runs the store: tokens, sign-in, readers of the log, upkeep."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime

import msgspec

from headrace import errors
from headrace.api.jobs import JobAnswer
from headrace.api.queues import RemovedAnswer
from headrace.api.route import V1, Route
from headrace.redaction import Redacted
from headrace.tokens import Scope


class TokenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    label: str
    tenant: str | None
    """Null: it acts for every tenant."""
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None
    """When it was last used, to the hour."""


class NewTokenAnswer(TokenAnswer, frozen=True, kw_only=True):
    """With the secret, which is told this once."""

    secret: str


class TokensAnswer(msgspec.Struct, frozen=True, kw_only=True):
    tokens: tuple[TokenAnswer, ...]


class NewTokenBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    label: str
    scopes: tuple[Scope, ...]
    tenant: str | None = None
    """Null: that of the token that creates it."""
    expires_at: datetime | None = None


class RevokedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    revoked: bool
    """It was good until now."""


class SignInBody(Redacted, frozen=True, kw_only=True, forbid_unknown_fields=True):
    token: str


class SessionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Who is signed in, and what they may do."""

    actor: str
    tenant: str | None
    scopes: tuple[Scope, ...]
    expires_at: datetime | None
    read_only: bool


class FindingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a diagnosis."""

    health: str
    what: str
    value: str
    advice: str | None


class DoctorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    findings: tuple[FindingAnswer, ...]


class ReaderAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever relies on the log: nothing is trimmed that it does not hold."""

    name: str
    cursor: str
    label: str | None
    since: datetime
    reached_at: datetime
    events_behind: int
    """Counted up to 1,000."""


class ReadersAnswer(msgspec.Struct, frozen=True, kw_only=True):
    readers: tuple[ReaderAnswer, ...]


class Upkeep(enum.StrEnum):
    """A part of maintenance, or all of it."""

    ALL = "all"
    REAP = "reap"
    LIFETIMES = "lifetimes"
    SWEEP = "sweep"
    SCHEDULES = "schedules"
    RESTAMP = "restamp"
    CLEANUP = "cleanup"


class UpkeepQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: int = 10_000
    """So many jobs at most does a part concern."""


class UpkeepAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs each part has changed, deleted or submitted."""

    done: Mapping[str, int]
    jobs: tuple[JobAnswer, ...] = ()
    """Those whose leases had lapsed, or whose lifetimes had ended, as they are now."""
    freed: Mapping[str, int] = {}
    """Slots that workers have got back, by worker."""


TOKENS = Route(
    name="list_tokens",
    method="GET",
    path=f"{V1}/tokens",
    summary="All tokens, those that were revoked or have expired, too.",
    scopes=(Scope.ADMIN,),
    answer=TokensAnswer,
)
CREATE_TOKEN = Route(
    name="create_token",
    method="POST",
    path=f"{V1}/tokens",
    summary="A new token with its secret, which is told this once.",
    scopes=(Scope.ADMIN,),
    body=NewTokenBody,
    answer=NewTokenAnswer,
    status=201,
)
REVOKE_TOKEN = Route(
    name="revoke_token",
    method="DELETE",
    path=f"{V1}/tokens/{{token_id}}",
    summary="Nobody gets in with it from now on.",
    scopes=(Scope.ADMIN,),
    answer=RevokedAnswer,
)
SIGN_IN = Route(
    name="sign_in",
    method="POST",
    path=f"{V1}/session",
    summary="Sign a browser in with a token: it is kept as a cookie.",
    is_open=True,
    body=SignInBody,
    answer=SessionAnswer,
    errors=(errors.Unauthenticated, errors.Forbidden),
)
SIGN_OUT = Route(
    name="sign_out",
    method="DELETE",
    path=f"{V1}/session",
    summary="Forget the cookie.",
    is_open=True,
    status=204,
)
SESSION = Route(
    name="get_session",
    method="GET",
    path=f"{V1}/session",
    summary="Who is signed in, and what they may do.",
    answer=SessionAnswer,
)
DOCTOR = Route(
    name="diagnose",
    method="GET",
    path=f"{V1}/doctor",
    summary="The health of the store, and whether its jobs are looked after.",
    scopes=(Scope.ADMIN,),
    for_operators=True,
    answer=DoctorAnswer,
)
READERS = Route(
    name="list_readers",
    method="GET",
    path=f"{V1}/readers",
    summary="Who relies on the log, and how far each has come.",
    scopes=(Scope.ADMIN,),
    for_operators=True,
    answer=ReadersAnswer,
)
FORGET_READER = Route(
    name="forget_reader",
    method="DELETE",
    path=f"{V1}/readers/{{name}}",
    summary="Let the log be trimmed whatever this reader holds.",
    scopes=(Scope.ADMIN,),
    for_operators=True,
    answer=RemovedAnswer,
)
MAINTAIN = Route(
    name="run_maintenance",
    method="POST",
    path=f"{V1}/maintenance/{{step}}",
    summary="Run a part of maintenance now: all, reap, lifetimes, sweep, schedules, restamp or cleanup.",
    scopes=(Scope.ADMIN,),
    for_operators=True,
    query=UpkeepQuery,
    answer=UpkeepAnswer,
)
ROUTES = (
    TOKENS,
    CREATE_TOKEN,
    REVOKE_TOKEN,
    SIGN_IN,
    SIGN_OUT,
    SESSION,
    DOCTOR,
    READERS,
    FORGET_READER,
    MAINTAIN,
)
