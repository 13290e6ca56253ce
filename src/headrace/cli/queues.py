"""`headrace pause` and `headrace resume`: hold a queue back, and let it go on."""

from __future__ import annotations

import click
import msgspec

from headrace.cli.exits import Exit
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.validation import check_name


class PauseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`tenant` null: for every tenant. `changed` false: it was so before."""

    queue: str
    tenant: str | None
    paused: bool
    changed: bool


@command("pause", examples=("headrace pause mail", "headrace pause mail --tenant acme"))
@click.argument("queue")
@in_session()
async def pause(session: Session, queue: str) -> Exit:
    """Hold a queue back: what waits, waits; what runs goes on."""
    before = await _is_paused(session, queue)
    if not before:
        await session.jobs.pause(queue)
    if session.out.as_json:
        _print_record(session, queue, paused=True, changed=not before)
    else:
        was = "was paused before" if before else "is paused; what runs goes on"
        session.out.text(f"queue {queue} {was}{_for_whom(session)}")
    return Exit.OK


@command("resume", examples=("headrace resume mail",))
@click.argument("queue")
@in_session()
async def resume(session: Session, queue: str) -> Exit:
    """Let a paused queue go on."""
    changed = await session.jobs.resume(queue)
    others = [one for one in await session.jobs.pauses() if one.queue == queue]
    if session.out.as_json:
        _print_record(session, queue, paused=bool(others), changed=changed)
        return Exit.OK
    session.out.text(
        f"queue {queue} {'goes on' if changed else 'was not paused'}{_for_whom(session)}"
    )
    for other in others:
        who = "every tenant: resume it without --tenant"
        if other.tenant is not None:
            who = f"tenant {other.tenant}: add --tenant {other.tenant}"
        session.out.text(f"  it is still paused for {who}")
    return Exit.OK


async def _is_paused(session: Session, queue: str) -> bool:
    check_name(queue, "queue")
    return any(
        one.queue == queue and one.tenant == session.jobs.tenant
        for one in await session.jobs.pauses()
    )


def _print_record(session: Session, queue: str, *, paused: bool, changed: bool) -> None:
    session.out.document(
        PauseRecord(queue=queue, tenant=session.jobs.tenant, paused=paused, changed=changed)
    )


def _for_whom(session: Session) -> str:
    return "" if session.jobs.tenant is None else f" (tenant {session.jobs.tenant})"
