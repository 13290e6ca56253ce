"""One request on its way through a handler, and what a handler gives back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec
from starlette.requests import Request

from headrace.api.route import Route
from headrace.manager import JobManager
from headrace.redaction import Redacted
from headrace.server.access import Access
from headrace.server.service import Service

Q = TypeVar("Q")
B = TypeVar("B")
T = TypeVar("T")


class Call(Generic[Q, B]):
    """What a handler works with. Query and body are those that the route declares."""

    __slots__ = (
        "_access",
        "body",
        "manager",
        "parameters",
        "query",
        "request",
        "root_path",
        "route",
        "service",
    )

    def __init__(
        self,
        service: Service,
        route: Route,
        request: Request,
        *,
        root_path: str,
        access: Access | None,
        manager: JobManager,
        parameters: Mapping[str, str],
        query: Q,
        body: B,
    ) -> None:
        self.service = service
        self.route = route
        self.request = request
        self.root_path = root_path
        self.parameters = parameters
        self.query = query
        self.body = body
        self.manager = manager
        """Reaches what the caller may reach, and nothing else."""
        self._access = access

    @property
    def access(self) -> Access:
        """Of a route that is not open, there always is one."""
        assert self._access is not None
        return self._access

    def __getitem__(self, name: str) -> str:
        """A parameter of the path."""
        return self.parameters[name]


class Reply(Redacted, frozen=True):
    """An answer that is not simply the route's own status with a body."""

    body: Any = None
    status: int | None = None
    """None: the route's."""
    headers: tuple[tuple[str, str], ...] = ()
    media_type: str | None = None
    """None: the route's. The body is bytes if it is another than JSON."""


class Stream(msgspec.Struct, frozen=True):
    """An answer without end: text/event-stream, piece by piece."""

    pieces: AsyncIterator[bytes]


Handler = Callable[[Call[Any, Any]], Awaitable[Any]]
Handlers = Mapping[Route, Handler]
