"""Addresses of the dashboard's pages: under any prefix, and exact whatever stands in a name.

Names and ids go into the query, never into the path: proxies and browsers change what they find there
(`..`, `//`, `%2F`), and any of that may stand in a queue's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlencode

import msgspec

Value = str | int | Iterable[str] | None


class Links(msgspec.Struct, frozen=True):
    """The addresses as one viewer needs them."""

    root: str
    """Where the application is mounted; without a slash at its end."""
    tenant: str | None = None
    """The tenant that an operator has chosen to look at: stays chosen from page to page."""

    def to(self, page: str, /, **query: Value) -> str:
        """`to("job", id=job.id)`. What is None, or empty, is left out."""
        return f"{self.root}/{page}{_query({'tenant': self.tenant, **query})}"

    def act(self, name: str) -> str:
        """Where a form posts to."""
        return f"{self.root}/acts/{name}{_query({'tenant': self.tenant})}"

    def own(self, address: str | None) -> str | None:
        """An address that a form or a query brings, if it is one of our pages: never somewhere else."""
        is_own = (
            address is not None
            and address.startswith(f"{self.root}/")
            and not address.startswith(("//", "/\\"))
        )
        return address if is_own else None

    def with_query(self, page: str, query: Mapping[str, Value], /, **changed: Value) -> str:
        """The same view but for what is changed; None takes a part away."""
        return self.to(page, **{**query, **changed})


def _query(values: Mapping[str, Value]) -> str:
    given: list[tuple[str, str]] = []
    for name, value in values.items():
        if value is None or value == "":
            continue
        if isinstance(value, str | int):
            given.append((name, str(value)))
        else:
            given += ((name, one) for one in value)
    return f"?{urlencode(given)}" if given else ""
