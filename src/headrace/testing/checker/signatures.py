"""What lets the checker see who wrote an outcome: handlers put their lease token into it."""

from __future__ import annotations

import re
from typing import Any

_NAME = "token"
_IN_TEXT = re.compile(r"\[token (\S+)\]")


def signed(token: str, message: str) -> str:
    """An error message that names its attempt; a result names it as `{"token": …}`."""
    return f"{message} [token {token}]"


def signature(recorded: Any) -> str | None:
    """The token that a result or an error message names, if it does."""
    if isinstance(recorded, dict):
        token = recorded.get(_NAME)
        return token if isinstance(token, str) else None
    if isinstance(recorded, str):
        found = _IN_TEXT.search(recorded)
        return None if found is None else found.group(1)
    return None
