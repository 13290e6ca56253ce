"""What is in a job, as text for people: JSON laid out, never parsed into numbers that get rounded. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from headrace.envelope import published

SHOWN_CHARS = 20_000
"""More than this is cut on the page; a link gives all of it."""


@dataclass(frozen=True)
class Content:
    """A payload, a result or a checkpoint."""

    part: str
    text: str
    size: int
    """Of what is stored, in bytes."""
    is_cut: bool


def content(part: str, stored: bytes | None, *, whole: bool = False) -> Content | None:
    """None where there is nothing. Encrypted without a key here: the notice that says so."""
    if stored is None:
        return None
    text = laid_out(published(stored))
    cut = not whole and len(text) > SHOWN_CHARS
    return Content(part, text[:SHOWN_CHARS] if cut else text, len(stored), cut)


def laid_out(encoded: bytes) -> str:
    """JSON over several lines, every digit as it is stored."""
    try:
        return msgspec.json.format(encoded, indent=2).decode("utf-8", "replace")
    except msgspec.DecodeError:
        return encoded.decode("utf-8", "replace")
