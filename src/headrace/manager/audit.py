"""Who has done what to the store: a row for each administrative act.

The row is written before the act, so that none is without one. What was refused is noted in its row.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from headrace.errors import HeadraceError, InvalidTime
from headrace.manager.context import Context
from headrace.manager.ledger import Ledger
from headrace.model import new_id
from headrace.validation import UNCHANGED

KEEP_DAYS = 90
ROWS = 100
TARGET_CHARS_MAX = 1000
SAID_BYTES_MAX = 4096
"""Of what was before and after; what is longer is left out."""


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """One administrative act."""

    id: str
    at: datetime
    actor: str | None
    """Who did it, as whoever called said. None: the application itself."""
    act: str
    """The verb of the manager: `pause`, `set_limits`, `start_bulk`."""
    target: str
    """What it was done to: the name of a queue, schedule, token or reader, or the id of a job or bulk act."""
    tenant: str | None
    """For whom it was done. None: for all."""
    before: Any = None
    """What was changed, as it was."""
    after: Any = None
    """What it was to be changed to."""
    error: str | None = None
    """The code of the error that refused it. None: nothing did, or the process died before it was known."""


LEDGER = Ledger("audit", AuditRow, keep_days=KEEP_DAYS, rows_max=500, pages_max=20)


@contextlib.asynccontextmanager
async def noted(
    context: Context, act: str, target: str, *, before: Any = None, after: Any = None
) -> AsyncIterator[None]:
    """Around an administrative act: raises what the act raises."""
    await context.synchronise()
    row = AuditRow(
        id=new_id(),
        at=context.now(),
        actor=context.actor,
        act=act,
        target=target[:TARGET_CHARS_MAX],
        tenant=context.tenant,
        before=_said(before),
        after=_said(after),
    )
    await LEDGER.append(context, [row], row.at)
    try:
        yield
    except HeadraceError as error:
        code = error.code
        await LEDGER.change(
            context, row.at, lambda one: replace(one, error=code) if one.id == row.id else None
        )
        raise


async def find(
    context: Context,
    since: datetime,
    until: datetime | None,
    *,
    actor: str | None,
    act: str | None,
    target: str | None,
    limit: int,
) -> tuple[AuditRow, ...]:
    """The newest first; those of the manager's tenant, or of all."""
    until = context.now() if until is None else until
    if not timedelta(0) <= until - since:
        raise InvalidTime(
            f"the time from {since.isoformat()} to {until.isoformat()} is none; {UNCHANGED}"
        )
    page = await LEDGER.read(context, since, until)
    found = [
        row
        for row in page.rows
        if since <= row.at <= until
        and context.tenant in (None, row.tenant)
        and actor in (None, row.actor)
        and act in (None, row.act)
        and target in (None, row.target)
    ]
    return tuple(found[::-1][:limit])


def _said(value: Any) -> Any:
    """As JSON has it, if it is short."""
    if value is None:
        return None
    encoded = msgspec.json.encode(value)
    if len(encoded) > SAID_BYTES_MAX:
        return {"left out": f"{len(encoded)} bytes"}
    return msgspec.json.decode(encoded)
