"""What a url says: where the server is, and the store's own options."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from headrace.errors import InvalidInput

SCHEMA_CHARS_MAX = 40
"""PostgreSQL cuts names at 63 bytes; ours is also part of the name of the notification channel."""
SCHEMA_CHARS_REFUSED = "'$\\"
"""They would end the literals and function bodies in which the name stands: see `sql`."""
POOL_SIZE_DEFAULT = 10


class Address(msgspec.Struct, frozen=True, kw_only=True):
    dsn: str
    """For the driver: the url without our own options."""
    where: str
    """For messages: no password."""
    schema: str
    pool_size: int


def parse(url: str, *, schema: str, pool_size: int) -> Address:
    """Options of the url (`?schema=`, `?pool_size=`) win over the arguments; others are the driver's.

    Raises InvalidInput.
    """
    parts = urlsplit(url)
    options = parse_qsl(parts.query, keep_blank_values=True)
    own = dict(options)
    schema = own.get("schema", schema)
    if (
        not 1 <= len(schema) <= SCHEMA_CHARS_MAX
        or not schema.isprintable()
        or not set(schema).isdisjoint(SCHEMA_CHARS_REFUSED)
    ):
        raise InvalidInput(
            f"schema {schema!r} must have 1 to {SCHEMA_CHARS_MAX} printable characters, without ' $ or \\; "
            "nothing was changed"
        )
    if schema.startswith("pg_"):
        raise InvalidInput(f"schema {schema!r}: names with pg_ belong to PostgreSQL")
    wanted = own.get("pool_size", str(pool_size))
    if not (wanted.isascii() and wanted.isdigit() and int(wanted) > 0):
        raise InvalidInput(f"pool_size {wanted!r} must be a whole number of 1 or more")
    rest = urlencode(
        [(name, value) for name, value in options if name not in ("schema", "pool_size")]
    )
    host = parts.netloc.rpartition("@")[2]
    return Address(
        dsn=f"{parts.scheme}://{parts.netloc}{parts.path}?{rest}".rstrip("?"),
        where=f"{parts.scheme}://{host}{parts.path}",
        schema=schema,
        pool_size=int(wanted),
    )
