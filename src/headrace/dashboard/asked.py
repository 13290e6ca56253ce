"""What a page was asked for, and by whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from starlette.datastructures import QueryParams

from headrace.dashboard.links import Links
from headrace.dashboard.same import Same
from headrace.manager import JobManager
from headrace.tokens import Scope


class Values(Protocol):
    """Named values that a viewer has given: in an address, or in a form."""

    def word(self, name: str) -> str | None:
        """One of that name; None where it is missing or empty."""
        ...

    def words(self, name: str) -> tuple[str, ...]:
        """All of that name, without those that are empty."""
        ...


@dataclass(frozen=True)
class Asked:
    """Everything that a view function may know."""

    manager: JobManager
    """That of the viewer's tenant, or of the one an operator looks at."""
    scopes: frozenset[Scope]
    links: Links
    query: QueryParams
    address: str
    """Where this server is reached, for commands that people copy."""
    actor: str
    is_signed_in: bool
    """By a cookie: somebody who can sign out."""

    @property
    def now(self) -> datetime:
        return self.manager.clock.now()

    @property
    def is_operator(self) -> bool:
        """Sees every tenant, or could."""
        return self.manager.tenant is None

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes

    @property
    def may_operate(self) -> bool:
        return self.may(Scope.OPERATE)

    @property
    def may_administer(self) -> bool:
        """Limits and tokens are everybody's: only an operator of all tenants changes them."""
        return self.may(Scope.ADMIN) and self.is_operator

    @property
    def sees_contents(self) -> bool:
        """Payloads, results, logs and messages of errors."""
        return self.may(Scope.READ_PAYLOAD)

    def word(self, name: str) -> str | None:
        """One parameter of the query; None where it is missing or empty."""
        return self.query.get(name) or None

    def words(self, name: str) -> tuple[str, ...]:
        """All its values, without those that are empty."""
        return tuple(value for value in self.query.getlist(name) if value)


@dataclass(frozen=True)
class View:
    """What a page shows: the template, and what that needs."""

    template: str
    title: str
    data: Mapping[str, Any]
    same: Sequence[Same] = field(default=())
    """The same on the command line, and over HTTP."""
    topics: Sequence[str] = ("*",)
    """What the page is about: `*` everything, or `job:ID`, `queue:NAME`, `type:NAME`. It is drawn again when
    that changes."""
    every_seconds: float | None = 5.0
    """How often it looks by itself while it is seen: for what changes without an event."""
    status: int = 200
