"""Where in a handler's code it failed: the traceback as text, short enough to be kept with the job."""

from __future__ import annotations

import asyncio
import concurrent.futures
import traceback
from pathlib import Path

import headrace
from headrace import error_text
from headrace.errors import HandlerError

TRACEBACK_BYTES_MAX = 4096
"""The end counts: that is where it happened."""
_CUT = "…\n"
_AROUND = tuple(
    f"{Path(str(module.__file__)).parent}/" for module in (headrace, asyncio, concurrent.futures)
)
"""Code that calls handlers, and says nothing about why they fail."""


def traceback_of(error: BaseException) -> str | None:
    """The traceback as Python prints it, from the first frame of the handler's own code on.

    With its causes, and without the values of variables. None: no code of the handler's is in it, or the
    error cannot be shown. What a handler raises to say how it failed has one only with what led to it: to
    keep a traceback costs a write, and such errors may come by the thousand.
    """
    try:
        is_word = error_text.is_a(error, HandlerError)
        if is_word and error.__cause__ is None and error.__context__ is None:
            return None
        told = traceback.TracebackException.from_exception(error, compact=True)
        return _end("".join(told.format())) if _trim(told, set()) else None
    except BaseException:  # noqa: BLE001 - it is the handler's object, and may do anything
        return None


def _trim(told: traceback.TracebackException, seen: set[int]) -> bool:
    """Leave out what stands before the handler's own code; False if there is none of that."""
    if id(told) in seen:
        return False
    seen.add(id(told))
    own = next((at for at, frame in enumerate(told.stack) if not _is_around(frame)), None)
    if own is not None:
        del told.stack[:own]
    led_to_it = (told.__cause__, told.__context__, *(getattr(told, "exceptions", None) or ()))
    found = [_trim(one, seen) for one in led_to_it if one is not None]
    return own is not None or any(found)


def _is_around(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith(_AROUND)


def _end(text: str) -> str:
    """The last bytes of it, in whole lines, as any store can keep them."""
    plain = text.replace("\0", "\ufffd").encode("utf-8", "replace")
    if len(plain) <= TRACEBACK_BYTES_MAX:
        return plain.decode()
    cut = plain[len(_CUT.encode()) - TRACEBACK_BYTES_MAX :].decode("utf-8", "ignore")
    return _CUT + (cut.partition("\n")[2] or cut)
