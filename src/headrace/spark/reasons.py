"""Why something on Spark failed, in one line."""

from __future__ import annotations

from headrace.errors import HeadraceError


def reason(error: BaseException) -> str:
    """The first line of what it says: Spark adds pages about places in its own code."""
    if isinstance(error, HeadraceError):
        return error.message
    said = getattr(error, "getMessage", error.__str__)() or str(error)
    return next(iter(said.strip().splitlines()), type(error).__name__)
