"""What the verbs of a manager have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.manager.context import Context
from headrace.stores.base import JobStore

MAINTENANCE_LIMIT = 10_000
Tags = Iterable[str] | Mapping[str, Any]


class Verbs:
    """Some of the manager's verbs; `JobManager` puts them together."""

    _context: Context

    @property
    def store(self) -> JobStore:
        """The store as it is: what is encrypted there is not decrypted here."""
        return self._context.bare_store

    @property
    def tenant(self) -> str | None:
        """Whom it acts for. None: every tenant, as an operator."""
        return self._context.tenant
