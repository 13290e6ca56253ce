"""Values that say who they are when they are printed, and keep to themselves what they hold.

Jobs and what is done to them are written into logs, tracebacks and test reports. A lease token there is a
key for whoever reads it, and a payload there is no longer encrypted.
"""

from __future__ import annotations

import msgspec

from headrace import address

SECRET = frozenset(
    {
        "body_json",
        "callback_url",
        "checkpoint",
        "checkpoint_json",
        "connection",
        "connection_string",
        "data",
        "detail_json",
        "dsn",
        "failure_message",
        "headers",
        "lines",
        "lease_token",
        "log_json",
        "message",
        "nonce",
        "note",
        "payload",
        "payload_json",
        "progress_note",
        "result",
        "result_json",
        "seals",
        "secrets",
        "token",
        "traceback",
        "url",
    }
)
"""Fields that may hold contents of jobs, tokens, passwords or keys."""
_URLS = frozenset({"connection_string", "url"})
"""Of these, what may be shown is shown."""


class Redacted(msgspec.Struct, frozen=True):
    """Printed without its secret fields, and without those that are as they are by default."""

    def __repr__(self) -> str:
        fields = msgspec.structs.fields(type(self))
        values = ((each.name, each.default, getattr(self, each.name)) for each in fields)
        told = ", ".join(
            f"{name}={address.shown(value) if name in _URLS else value!r}"
            for name, default, value in values
            if (name not in SECRET or name in _URLS) and not _is(value, default)
        )
        return f"{type(self).__name__}({told})"


def _is(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and value == default)
