"""Tokens in the store, a record each: made, listed, revoked, and found by their secret."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from headrace import tokens, validation
from headrace.errors import InvalidInput, InvalidTime, StoreCorrupt, StoreError
from headrace.manager.context import Context
from headrace.manager.records import change_record, find_record
from headrace.redaction import Redacted
from headrace.stores.base import Record
from headrace.tokens import Scope, Token

KIND = "token"
LABEL_CHARS_MAX = 200
USED = timedelta(hours=1)
"""That a token is used is written down this often."""


class NewToken(Redacted, frozen=True, kw_only=True):
    """A token and its secret, which is told this once and stored nowhere."""

    token: Token
    secret: str

    def __repr__(self) -> str:
        return f"NewToken(token={self.token!r})"


async def create(
    context: Context,
    label: str,
    scopes: Iterable[Scope | str],
    *,
    tenant: str | None,
    expires_at: datetime | None,
) -> NewToken:
    validation.check_text(label, "the label", LABEL_CHARS_MAX)
    await context.synchronise()
    now = context.now()
    if expires_at is not None and validation.check_time(expires_at, "expires_at") <= now:
        raise InvalidTime(
            f"a token that expires at {expires_at.isoformat()} would be dead already; "
            f"{validation.UNCHANGED}"
        )
    token_id, secret = tokens.new_secret(os.urandom)
    token = Token(
        id=token_id,
        label=label,
        digest=tokens.digest_of(secret),
        tenant=_tenant(context, tenant),
        scopes=tokens.check_scopes(scopes),
        created_at=now,
        expires_at=expires_at,
    )
    if not await context.store.put_record(_written(Record(kind=KIND, name=token_id), token)):
        return await create(context, label, scopes, tenant=tenant, expires_at=expires_at)
    return NewToken(token=token, secret=secret)


async def find_all(context: Context) -> tuple[Token, ...]:
    """Those of the manager's tenant, or of all, the oldest first; revoked and expired ones, too."""
    found = [_read(record) for record in await context.store.records(KIND)]
    own = [token for token in found if context.tenant in (None, token.tenant)]
    return tuple(sorted(own, key=lambda token: (token.created_at, token.id)))


async def revoke(context: Context, token_id: str) -> bool:
    """True if it was good until now."""
    validation.check_name(token_id, "id of the token")
    await context.synchronise()
    now = context.now()

    def decide(record: Record) -> tuple[Record, bool]:
        token = _read(record) if record.version else None
        if token is None or context.tenant not in (None, token.tenant) or token.revoked_at:
            return record, False
        return _written(record, replace(token, revoked_at=now)), token.is_valid(now)

    return await change_record(context.store, KIND, token_id, decide, what=f"token {token_id}")


async def by_secret(context: Context, secret: str) -> Token | None:
    """The token with this secret, if it is good now; None whatever is wrong with it."""
    token_id = tokens.id_in(secret)
    if token_id is None:
        return None
    record = await find_record(context.store, KIND, token_id)
    token = _read(record) if record.version else None
    if token is None or not token.fits(secret) or context.tenant not in (None, token.tenant):
        return None
    await context.synchronise()
    now = context.now()
    if not token.is_valid(now):
        return None
    if token.used_at is None or now - token.used_at >= USED:
        token = replace(token, used_at=now.replace(minute=0, second=0, microsecond=0))
        await _note_use(context, _written(record, token))
    return token


async def _note_use(context: Context, record: Record) -> None:
    """Whoever was quicker has noted it, or revoked the token; a store that cannot write can still read."""
    try:
        await context.store.put_record(record)
    except StoreError:
        return


def _tenant(context: Context, asked: str | None) -> str | None:
    """A manager bound to a tenant makes tokens for that one only."""
    if asked is not None:
        validation.check_name(asked, "tenant")
    if context.tenant is not None and asked not in (None, context.tenant):
        raise InvalidInput(
            f"this manager is bound to tenant {context.tenant!r}, and makes no token for another; "
            f"{validation.UNCHANGED}"
        )
    return asked or context.tenant


def _written(record: Record, token: Token) -> Record:
    return replace(record, body_json=msgspec.json.encode(token))


def _read(record: Record) -> Token:
    try:
        return msgspec.json.decode(record.body_json, type=Token)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(
            f"token {record.name} cannot be read ({error}); it was left as it is, and opens nothing"
        ) from error
