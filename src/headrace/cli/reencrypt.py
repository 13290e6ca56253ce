"""`headrace reencrypt`: bring what is encrypted under the primary key of the ring."""

from __future__ import annotations

import click
import msgspec

from headrace.cli.exits import Exit
from headrace.cli.output import note
from headrace.cli.progress import progress
from headrace.cli.selection import count
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.errors import InvalidKeyRing
from headrace.manager import Reencrypted

STEP_JOBS = 100


class ReencryptedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`left` 0: nothing needs the old keys any more."""

    primary: str
    looked_at: int
    done: int
    left: int
    skipped: int
    unreadable: int
    plain: int


@command(
    "reencrypt",
    examples=("headrace reencrypt --keys keys.txt", "headrace reencrypt --seal-plain --json"),
)
@click.option("--seal-plain", is_flag=True, help="Encrypt, too, what was stored in the clear.")
@in_session()
async def reencrypt(session: Session, *, seal_plain: bool) -> Exit:
    """Bring every encrypted job under the ring's primary key.

    Jobs that a worker holds are left for a later run. It can be interrupted and run again at any time:
    what is done is passed over. When nothing is left, the old keys can be taken out of the ring.
    """
    if session.jobs.keys is None:
        raise InvalidKeyRing(
            "there is no key ring: name its file with --keys, or put it into HEADRACE_KEYS"
        )
    primary = session.jobs.keys.primary
    done = await _walk(session, seal_plain=seal_plain)
    if session.out.as_json:
        record = ReencryptedRecord(
            primary=primary,
            left=done.left,
            **{
                name: getattr(done, name)
                for name in ("looked_at", "done", "skipped", "unreadable", "plain")
            },
        )
        session.out.document(record)
    else:
        _print(session, done, primary)
    return Exit.REFUSED if done.left else Exit.OK


async def _walk(session: Session, *, seal_plain: bool) -> Reencrypted:
    """All jobs, some at a time."""
    with progress("re-encrypting") as bar:
        total = (await session.jobs.stats()).total
        done = await session.jobs.reencrypt(limit=STEP_JOBS, seal_plain=seal_plain)
        while done.cursor is not None:
            bar.show(done.looked_at, total)
            step = await session.jobs.reencrypt(
                limit=STEP_JOBS, cursor=done.cursor, seal_plain=seal_plain
            )
            done = done.plus(step)
    return done


def _print(session: Session, done: Reencrypted, primary: str) -> None:
    session.out.text(f"{count(done.done)} re-encrypted, with key {primary}; {done.left} left")
    if done.skipped:
        session.out.text(f"  {done.skipped} held by a worker or just changed: run this again later")
    if done.unreadable:
        session.out.text(f"  {done.unreadable} under a key that is not in the ring, or damaged")
    if not done.left:
        session.out.text("no other key is needed any more")
    if done.plain:
        note(f"{count(done.plain)} in the clear: --seal-plain encrypts them, too")
