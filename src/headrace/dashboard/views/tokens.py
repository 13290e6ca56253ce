"""Tokens: who may do what, since when, and whether they are used. Their secrets are nowhere."""

from __future__ import annotations

from headrace.dashboard.asked import Asked, View
from headrace.dashboard.same import Same, command, curl


async def tokens(asked: Asked) -> View:
    found = await asked.manager.list_tokens()
    return View(
        "tokens.html",
        "Tokens",
        {"tokens": found[::-1]},
        same=(Same("List them", command("token", "list"), curl(asked.address, "/tokens")),),
        every_seconds=10.0,
    )
