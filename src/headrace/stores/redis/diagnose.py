"""What the server says of its own health."""

from __future__ import annotations

from headrace.stores.base import Finding, Health
from headrace.stores.redis.connection import Server
from headrace.stores.redis.durability import LOSES, Durability, durability, settings, told
from headrace.stores.redis.schema import SCHEMA_VERSION

SERVER_VERSION_MIN = 7
MEMORY_SHARE_MAX = 0.9


async def diagnose(server: Server) -> list[Finding]:
    info = await _info(server)
    keys = server.keys
    schema = await server.read("GET", keys.of("schema"))
    version = "not told" if schema is None else schema.decode()
    return [
        _server(info),
        _durability(await durability(server), accepted=server.accepts_losses),
        _eviction((await settings(server, "maxmemory-policy")).get("maxmemory-policy")),
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


async def _info(server: Server) -> dict[str, str]:
    text = (await told(server, "INFO") or b"").decode()
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {name: value for name, _, value in pairs}


def _finding(
    what: str, value: str, health: Health = Health.OK, advice: str | None = None
) -> Finding:
    """Advice is only given where something is wrong."""
    return Finding(health, what, value, None if health is Health.OK else advice)
