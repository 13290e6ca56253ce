"""From a url to a server that holds the present schema."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

from redis.asyncio.connection import parse_url

from headrace import address as addresses
from headrace.errors import InvalidInput
from headrace.stores.redis import diagnose, schema
from headrace.stores.redis.connection import Options, Server

SCHEMES = ("redis", "rediss", "unix")
TIMEOUT_SECONDS = 30.0
CONNECT_TIMEOUT_SECONDS = 5.0
CONNECTIONS_MAX = 16
"""Redis runs one script at a time; more connections would only wait at the server instead of here."""

_OURS = frozenset({"prefix", "durability"})
_REDIS = frozenset(
    {
        "client_name",
        "db",
        "health_check_interval",
        "max_connections",
        "password",
        "socket_connect_timeout",
        "socket_keepalive",
        "socket_timeout",
        "username",
    }
)
_TLS = "ssl_"


def parse(url: str, *, prefix: str, relaxed_durability: bool) -> Options:
    """The options of a url; those in the url win. Raises InvalidInput for one that is not known.

    Options that would change what a command means (decoding, retries, the protocol) are refused.
    """
    parts = addresses.split(url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    address = addresses.shown(url)
    if parts.scheme not in SCHEMES:
        raise InvalidInput(f"{address} is not a Redis url: write redis://host:port/0")
    ours = {name: given.pop(name) for name in _OURS & given.keys()}
    unknown = [name for name in given if name not in _REDIS and not name.startswith(_TLS)]
    if unknown:
        raise InvalidInput(
            f"{address} has options this store does not take: {', '.join(sorted(unknown))}"
        )
    durability = ours.get("durability")
    if durability not in (None, "relaxed"):
        raise InvalidInput(f"durability={durability!r} in {address}: it is relaxed or left out")
    try:
        connection: dict[str, Any] = dict(
            parse_url(addresses.joined(parts._replace(query=urlencode(given))))
        )
    except ValueError as error:
        raise InvalidInput(f"{address} cannot be read: {error}") from error
    timeout = connection.pop("socket_timeout", TIMEOUT_SECONDS)
    connection.setdefault("socket_connect_timeout", CONNECT_TIMEOUT_SECONDS)
    return Options(
        address=address,
        connections_max=connection.pop("max_connections", CONNECTIONS_MAX),
        connection=connection,
        prefix=_check_prefix(ours.get("prefix", prefix)),
        relaxed_durability=relaxed_durability or durability == "relaxed",
        timeout_seconds=timeout or None,
    )


async def open_server(options: Options, *, migrate: bool, create: bool) -> Server:
    """Closed again, unless all is well with it."""
    server = Server(options)
    try:
        await schema.check(server, migrate=migrate, create=create)
        if not options.relaxed_durability:
            await diagnose.warn_unless_durable(server)
    except BaseException:
        await server.close()
        raise
    return server


def _check_prefix(prefix: str) -> str:
    if not prefix or not prefix.isprintable() or set(prefix) & set("{} "):
        raise InvalidInput(f"the prefix {prefix!r} must be text without braces and spaces")
    return prefix
