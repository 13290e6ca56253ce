"""Errors that mean the same: messages with what differs between two occurrences taken out. Pure."""

from __future__ import annotations

import hashlib
import json
import re

MESSAGE_CHARS_MAX = 300

VARIABLE_PARTS = (
    (r"(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uuid>"),
    (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b", "<time>"),
    # An apostrophe within a word opens no quotation.
    (r"(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|`[^`]*`", "<text>"),
    (r"(?i)\b0x[0-9a-f]+\b|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b", "<hex>"),
    (r"\d+(?:[.,:]\d+)*", "<n>"),
    (r"\s+", " "),
)
"""What differs between two occurrences of one error, in Java's and Python's regular expressions alike,
and what stands in its place. Applied in this order."""

_COMPILED = tuple((re.compile(pattern), stand_in) for pattern, stand_in in VARIABLE_PARTS)


def collapsed(message: str) -> str:
    """The message with its variable parts collapsed: equal for errors that mean the same."""
    for pattern, stand_in in _COMPILED:
        message = pattern.sub(stand_in, message)
    return message.strip()[:MESSAGE_CHARS_MAX]


def fingerprint(type_: str, category: str | None, code: str | None, message: str | None) -> str:
    """Names a group of errors: the same type of job, category, code and collapsed message.

    Encrypted messages are None: such errors are told apart by the rest alone.
    """
    told = json.dumps([type_, category, code, message], ensure_ascii=False)
    return hashlib.blake2b(told.encode(), digest_size=8).hexdigest()
