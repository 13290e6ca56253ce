"""From a method and a path to a route. Segments are compared before they are decoded: `a%2Fb` is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from headrace.api.route import Route


class Router:
    """A tree of segments; of two routes the one that names a segment wins over the one that takes any."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            node = self._root
            for segment in route.path.strip("/").split("/"):
                node = node.child(segment)
            if route.method in node.routes:
                raise ValueError(f"{route.method} {route.path} stands twice in the table")
            node.routes[route.method] = route

    def find(
        self, method: str, segments: Sequence[str]
    ) -> tuple[Mapping[str, Route], list[str]] | None:
        """The routes at this place by method, and the decoded parameters in order.

        One that answers the method wins: `GET /jobs/batch` is the job of that name.
        """
        places = list(self._root.find(segments, 0))
        for routes, raw in places:
            if method in routes:
                return routes, [unquote(value) for value in raw]
        return (places[0][0], []) if places else None


class _Node:
    __slots__ = ("any", "named", "routes")

    def __init__(self) -> None:
        self.named: dict[str, _Node] = {}
        self.any: _Node | None = None
        self.routes: dict[str, Route] = {}

    def child(self, segment: str) -> _Node:
        if not segment.startswith("{"):
            return self.named.setdefault(segment, _Node())
        if self.any is None:
            self.any = _Node()
        return self.any

    def find(
        self, segments: Sequence[str], at: int
    ) -> Iterator[tuple[Mapping[str, Route], list[str]]]:
        if at == len(segments):
            if self.routes:
                yield self.routes, []
            return
        segment = segments[at]
        named = self.named.get(segment)
        if named is not None:
            yield from named.find(segments, at + 1)
        if self.any is not None and segment:
            for routes, values in self.any.find(segments, at + 1):
                yield routes, [segment, *values]


def segments_of(scope: Mapping[str, Any], prefix: str) -> list[str] | None:
    """The segments of the path below where the application is mounted; None if it is not below that."""
    root_path = scope.get("root_path", "") + prefix
    raw = scope.get("raw_path")
    if raw is None:
        path, root = quote(scope["path"], safe="/"), quote(root_path, safe="/")
    else:
        path, root = raw.split(b"?", 1)[0].decode("latin-1"), quote(root_path, safe="/")
    if not path.startswith(root):
        # Some hosts give the path as it is below the mount already.
        path, root = quote(scope["path"], safe="/"), quote(prefix, safe="/")
        if not path.startswith(root):
            return None
    rest = path[len(root) :]
    if rest and not rest.startswith("/"):
        return None
    return rest.strip("/").split("/")
