"""What the server says of its own health, and promises about writes that it has acknowledged."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Literal

import redis.exceptions as redis_errors

from headrace.errors import StoreError
from headrace.stores.base import Finding, Health
from headrace.stores.redis.connection import Server
from headrace.stores.redis.schema import SCHEMA_VERSION

Durability = Literal["always", "everysec", "none", "unknown"]

LOSES: Mapping[Durability, str] = {
    "always": "a crash of the server loses nothing that was acknowledged",
    "everysec": "a crash of the server may lose the last second of acknowledged writes",
    "none": "a crash of the server may lose every write since its last snapshot",
    "unknown": "the server does not say what a crash may lose",
}

SERVER_VERSION_MIN = 7
MEMORY_SHARE_MAX = 0.9

logger = logging.getLogger("headrace.stores.redis")


async def diagnose(server: Server) -> list[Finding]:
    info = await _info(server)
    keys = server.keys
    schema = await server.read("GET", keys.of("schema"))
    version = "not told" if schema is None else schema.decode()
    return [
        _server(info),
        _durability(await durability(server), accepted=server.accepts_losses),
        _eviction((await _settings(server, "maxmemory-policy")).get("maxmemory-policy")),
        _memory(int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))),
        _finding(
            "role",
            info.get("role", "not told"),
            Health.ERROR if info.get("role") == "slave" else Health.OK,
            "this is a replica, which takes no writes: give the url of the primary",
        ),
        _finding(
            "schema",
            f"{version} of {SCHEMA_VERSION}",
            Health.OK if version == str(SCHEMA_VERSION) else Health.ERROR,
            "it was migrated meanwhile: restart this program with the newer Headrace",
        ),
        _finding("jobs", str(await server.read("ZCARD", keys.of("jobs")))),
        _finding("events", str(await server.read("XLEN", keys.of("events")))),
        _finding("lanes", str(await server.read("HLEN", keys.of("lanes")))),
    ]


async def durability(server: Server) -> Durability:
    """How the append-only file is set: what a crash of the server can cost."""
    found = await _settings(server, "append*")
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


def _server(info: dict[str, str]) -> Finding:
    name = "Valkey" if "valkey_version" in info else "Redis"
    # Valkey names the Redis version it is compatible with.
    compatible = info.get("redis_version", "")
    number = compatible.partition(".")[0]
    old = number.isdigit() and int(number) < SERVER_VERSION_MIN
    return _finding(
        "server",
        f"{name} {info.get('valkey_version') or compatible or 'of a version it does not tell'}",
        Health.ERROR if old else Health.OK,
        f"use Redis {SERVER_VERSION_MIN} or newer, or Valkey",
    )


def _durability(level: Durability, *, accepted: bool) -> Finding:
    """Whoever asked for relaxed durability has said that it will do: it is shown without a warning."""
    if level == "always":
        return _finding("durability", level)
    if accepted:
        return _finding("durability", f"{level}, accepted by durability=relaxed: {LOSES[level]}")
    return _finding(
        "durability",
        level,
        Health.WARNING,
        f"{LOSES[level]}: set appendonly yes and appendfsync always, or accept it with "
        "durability=relaxed",
    )


def _eviction(policy: str | None) -> Finding:
    """A server that evicts would delete jobs, or one key of several, when its memory is full."""
    if policy is None:
        return _finding(
            "maxmemory-policy", "not told", Health.WARNING, "make sure that it is noeviction"
        )
    return _finding(
        "maxmemory-policy",
        policy,
        Health.OK if policy == "noeviction" else Health.ERROR,
        "the server may delete jobs when its memory is full: set maxmemory-policy noeviction",
    )


def _memory(used: int, most: int) -> Finding:
    return _finding(
        "memory",
        f"{used} bytes used" + (f" of {most}" if most else ", no limit set"),
        Health.WARNING if most and used > MEMORY_SHARE_MAX * most else Health.OK,
        "past the limit every write is refused: delete ended jobs sooner, or raise maxmemory",
    )


async def _settings(server: Server, pattern: str) -> dict[str, str]:
    """CONFIG GET; nothing where the server forbids it."""
    flat = await _ask(server, "CONFIG", "GET", pattern) or []
    texts = [item.decode() for item in flat]
    return dict(zip(texts[::2], texts[1::2], strict=True))


async def _ask(server: Server, *command: str) -> Any:
    """The answer, or None where the server refuses to give it: managed ones often do."""
    try:
        return await server.read(*command)
    except StoreError as error:
        if isinstance(error.__cause__, redis_errors.ResponseError):
            return None
        raise


async def _info(server: Server) -> dict[str, str]:
    text = (await _ask(server, "INFO") or b"").decode()
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {name: value for name, _, value in pairs}


def _finding(
    what: str, value: str, health: Health = Health.OK, advice: str | None = None
) -> Finding:
    """Advice is only given where something is wrong."""
    return Finding(health, what, value, None if health is Health.OK else advice)
