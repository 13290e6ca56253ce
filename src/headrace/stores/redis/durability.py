"""What the server promises about writes it has acknowledged."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Literal

import redis.exceptions as redis_errors

from headrace.errors import StoreError
from headrace.stores.redis.connection import Server

Durability = Literal["always", "everysec", "none", "unknown"]

LOSES: Mapping[Durability, str] = {
    "always": "a crash of the server loses nothing that was acknowledged",
    "everysec": "a crash of the server may lose the last second of acknowledged writes",
    "none": "a crash of the server may lose every write since its last snapshot",
    "unknown": "the server does not say what a crash may lose",
}

logger = logging.getLogger("headrace.stores.redis")


async def durability(server: Server) -> Durability:
    """How the append-only file is set: what a crash of the server can cost."""
    found = await settings(server, "append*")
    if not found:
        return "unknown"
    if found.get("appendonly") != "yes":
        return "none"
    match found.get("appendfsync"):
        case "always":
            return "always"
        case "everysec":
            return "everysec"
        case _:
            return "none"  # the operating system decides when: nothing can be promised


async def warn_unless_durable(server: Server) -> None:
    """In the log rather than by `warnings`: it is about a server's settings, not about code."""
    level = await durability(server)
    if level != "always":
        logger.warning(
            "%s: durability is %s: %s. Set appendonly yes and appendfsync always, or open the store "
            "with durability=relaxed to accept this",
            server.address,
            level,
            LOSES[level],
        )


async def settings(server: Server, pattern: str) -> dict[str, str]:
    """CONFIG GET; nothing where the server forbids it."""
    flat = await told(server, "CONFIG", "GET", pattern) or []
    texts = [item.decode() for item in flat]
    return dict(zip(texts[::2], texts[1::2], strict=True))


async def told(server: Server, *command: str) -> Any:
    """The answer, or None where the server refuses to give it: managed ones often do."""
    try:
        return await server.read(*command)
    except StoreError as error:
        if isinstance(error.__cause__, redis_errors.ResponseError):
            return None
        raise
