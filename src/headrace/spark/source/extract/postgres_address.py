"""A PostgreSQL store's url in the words of libpq, which ADBC connects by.

The store itself connects by asyncpg, which takes any option that it does not know for a setting of the
server. libpq refuses those, and takes settings in an option of its own.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode, urlsplit

_RENAMED = {"database": "dbname"}
_LIBPQ = frozenset(
    {
        *("application_name", "channel_binding", "connect_timeout", "dbname", "gssencmode"),
        *("gsslib", "host", "hostaddr", "keepalives", "keepalives_count", "keepalives_idle"),
        *("keepalives_interval", "krbsrvname", "load_balance_hosts", "options", "passfile"),
        *("password", "port", "requirepeer", "service", "ssl_max_protocol_version"),
        *("ssl_min_protocol_version", "sslcert", "sslcrl", "sslcrldir", "sslkey", "sslmode"),
        *("sslnegotiation", "sslpassword", "sslrootcert", "sslsni", "target_session_attrs"),
        *("tcp_user_timeout", "user"),
    }
)


def libpq_url(dsn: str) -> str:
    """The same server for libpq."""
    parts = urlsplit(dsn)
    given = [
        (_RENAMED.get(name, name), value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    taken = [(name, value) for name, value in given if name in _LIBPQ and name != "options"]
    options = [value for name, value in given if name == "options"]
    options += [f"-c {name}={_escaped(value)}" for name, value in given if name not in _LIBPQ]
    if options:
        taken.append(("options", " ".join(options)))
    query = urlencode(taken, quote_via=quote)  # libpq does not read + as a space
    return f"{parts.scheme}://{parts.netloc}{parts.path}{'?' if query else ''}{query}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
