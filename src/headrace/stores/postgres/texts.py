"""What PostgreSQL's text cannot hold: the character NUL, and halves of surrogate pairs."""

from __future__ import annotations

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def storable(text: str) -> str:
    """The text with what cannot be stored replaced.

    An error's message must never keep a worker from reporting the error, and a token or id with such
    characters matches nothing anyway.
    """
    if text.isascii():
        return text if "\0" not in text else text.replace("\0", _REPLACEMENT)
    return (
        text.encode("utf-16", "surrogatepass")
        .decode("utf-16", "replace")
        .replace("\0", _REPLACEMENT)
    )


def storable_or_none(text: str | None) -> str | None:
    return None if text is None else storable(text)
