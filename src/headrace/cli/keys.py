"""`headrace keys`: make a key for a ring, or look at what a ring holds."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import msgspec

from headrace.cli.exits import Exit
from headrace.cli.output import Output
from headrace.cli.session import current_settings, key_ring
from headrace.cli.settings import Settings, command
from headrace.crypto import new_key
from headrace.errors import InvalidKeyRing


class NewKeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a ring. It is nowhere else: whoever loses it loses what it encrypts."""

    line: str


class RingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Names only: no command prints a key that it did not just make."""

    primary: str
    keys: tuple[str, ...]


@command(
    "keys",
    examples=("headrace keys new", "headrace keys new --id 2026-11", "headrace keys list"),
)
@click.argument("action", type=click.Choice(["new", "list"]))
@click.option("--id", "key_id", help="The new key's name.  [default: the year and the month]")
def keys(action: str, key_id: str | None) -> Exit:
    """Print a new key as a line of a ring, or list the ids of the ring in use.

    The first line of a ring is its primary key, which encrypts; the others only decrypt. Nothing is
    written: put the line where your secrets are kept.
    """
    settings = current_settings()
    out = Output(as_json=settings.json)
    if action == "new":
        line = new_key(key_id or datetime.now(UTC).strftime("%Y-%m"))
        if out.as_json:
            out.document(NewKeyRecord(line=line))
        else:
            out.text(line)
        return Exit.OK
    _list(settings, out)
    return Exit.OK


def _list(settings: Settings, out: Output) -> None:
    ring = key_ring(settings)
    if ring is None:
        raise InvalidKeyRing(
            "there is no key ring: name its file with --keys, or put it into HEADRACE_KEYS"
        )
    if out.as_json:
        out.document(RingRecord(primary=ring.primary, keys=ring.ids))
        return
    for key_id in ring.ids:
        out.text(key_id, (" (primary)", "dim") if key_id == ring.primary else "")
