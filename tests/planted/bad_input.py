"""Doors left open: bad input that goes in, secrets that come out."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec

from headrace import address, input_checks, redaction, validation
from headrace.cli import exits
from tests.planted.defect import Defect, patched


def passes_all(one: input_checks.Check, name: str, value: Any) -> Any:
    return value


def quotes_what_it_was_given(value: object) -> str:
    return repr(value)


def takes_any_text(value: object, what: str, *rest: Any, **more: Any) -> Any:
    return value


def shown_whole(url: object) -> str:
    return str(url)


def without_the_user_only(url: object) -> str:
    text = str(url)
    return text.replace("me:", "").replace("me@", "")


def left_as_it_is(text: str) -> str:
    return text


OPEN_DOORS: dict[str, Defect] = {
    "nothing is compared at the door": patched(input_checks, "_passed", passes_all),
    "refusals quote a value that cannot be printed": patched(
        input_checks, "told", quotes_what_it_was_given
    ),
    "names may be anything": patched(validation, "_text", takes_any_text),
}
"""Bad input that reaches what stands behind: the fuzz must find it."""

TOLD_SECRETS: dict[str, Defect] = {
    "urls are shown whole": patched(address, "shown", shown_whole),
    "urls are shown without the user's name": patched(address, "shown", without_the_user_only),
    "what a shell says is not scrubbed": patched(exits, "scrubbed", left_as_it_is),
}
"""Passwords in what is printed."""


def with_all_its_fields(self: msgspec.Struct) -> str:
    return f"{type(self).__name__}{msgspec.structs.astuple(self)!r}"


TOLD_CONTENTS: dict[str, Defect] = {
    "a lease is printed with its token": patched(
        redaction.Redacted, "__repr__", with_all_its_fields
    )
}
"""Tokens and contents in what is printed of values."""

NO_DEFECT: Defect = contextlib.nullcontext
