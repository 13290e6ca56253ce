"""A route of the HTTP API as a value: what is asked, what is answered, and who may ask.

One table of them gives the server its dispatch, the OpenAPI document, the page of routes, the client its
calls and the tests their matrix.
"""

from __future__ import annotations

import re
from urllib.parse import quote

import msgspec

from headrace.errors import HeadraceError
from headrace.redaction import Redacted
from headrace.tokens import Scope

V1 = "/api/v1"
LEASE_HEADER = "Headrace-Lease"
"""A worker shows the token of the lease that its write is fenced by."""
TENANT_HEADER = "Headrace-Tenant"
"""A token that acts for every tenant acts for this one alone."""
KEY_HEADER = "Idempotency-Key"
_PARAMETER = re.compile(r"\{(\w+)\}")


class Route(Redacted, frozen=True, kw_only=True):
    """One method on one path. A token needs every one of the scopes."""

    name: str
    """Unique; the operationId of the OpenAPI document."""
    method: str
    path: str
    summary: str
    scopes: tuple[Scope, ...] = ()
    """None: whoever is signed in may ask."""
    is_open: bool = False
    """Whoever can connect may ask, signed in or not."""
    for_operators: bool = False
    """Only for tokens that act for every tenant."""
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | None = None
    body_optional: bool = False
    answer: type | None = None
    """What stands in the body; None: nothing does."""
    status: int = 200
    also: tuple[int, ...] = ()
    """Other statuses with the same answer."""
    errors: tuple[type[HeadraceError], ...] = ()
    """Beyond those that every route may answer."""
    headers: tuple[str, ...] = ()
    """Request headers that it reads."""
    waits: bool = False
    """It may take its time: whoever hangs up meanwhile stops it."""
    media_type: str = "application/json"

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names in braces, in order."""
        return tuple(_PARAMETER.findall(self.path))

    def address(self, **values: str) -> str:
        """The path for these parameters. Each is one segment, whatever characters it has."""
        return _PARAMETER.sub(lambda found: quote(values[found[1]], safe=""), self.path)
