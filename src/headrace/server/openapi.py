"""The table of routes as an OpenAPI 3.1 document."""

from __future__ import annotations

import functools
from http import HTTPStatus
from typing import Any

import msgspec

from headrace.api import problems
from headrace.api.route import Route
from headrace.api.table import ROUTES
from headrace.errors import (
    Forbidden,
    HeadraceError,
    InvalidInput,
    InvalidRequest,
    RequestTooLarge,
    StoreError,
    StoreUnavailable,
    TooManyRequests,
    Unauthenticated,
)
from headrace.version import VERSION

ANY_ROUTE = (TooManyRequests, StoreError, StoreUnavailable)
SIGNED_IN = (Unauthenticated, Forbidden)
READING = (InvalidRequest, InvalidInput)
_REF = "#/components/schemas/{name}"
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string"},
        "detail": {"type": "string"},
    },
}


def document(root_path: str = "") -> dict[str, Any]:
    """For a server that is mounted there."""
    return {**_document(), "servers": [{"url": root_path or "/"}]}


@functools.cache
def _document() -> dict[str, Any]:
    types = [
        kind
        for route in ROUTES
        for kind in (route.query, route.body, route.answer)
        if kind is not None
    ]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    schema_of = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(
            route, schema_of, components
        )
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headrace", "version": VERSION},
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": _PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(
    route: Route, schema_of: dict[Any, dict[str, Any]], components: dict[str, Any]
) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in route.parameters
    ]
    if route.query is not None:
        fields = components[route.query.__name__]
        required = fields.get("required", ())
        parameters += [
            {"name": name, "in": "query", "required": name in required, "schema": schema}
            for name, schema in fields["properties"].items()
        ]
    parameters += [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}}
        for name in route.headers
    ]
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": parameters,
        "responses": _responses(route, schema_of),
        "security": [] if route.is_open else [{"token": []}],
        "x-scopes": list(route.scopes),
        "x-for-operators": route.for_operators,
    }
    if route.body is not None:
        operation["requestBody"] = {
            "required": not route.body_optional,
            "content": {"application/json": {"schema": schema_of[route.body]}},
        }
    return operation


def _responses(route: Route, schema_of: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for status in (route.status, *route.also):
        answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if route.answer is not None:
            answer["content"] = {route.media_type: {"schema": schema_of[route.answer]}}
        answers[str(status)] = answer
    if route.method == "GET" and route.status == HTTPStatus.OK:
        answers["304"] = {"description": HTTPStatus.NOT_MODIFIED.phrase}
    for status, codes in _problems_of(route).items():
        answers.setdefault(
            str(status),
            {
                "description": f"{HTTPStatus(status).phrase}: {', '.join(codes)}",
                "content": {problems.MEDIA_TYPE: {"schema": {"$ref": _REF.format(name="Problem")}}},
            },
        )
    return answers


def _problems_of(route: Route) -> dict[int, list[str]]:
    """The codes of the problems that it may answer, by status."""
    kinds: list[type[HeadraceError]] = [*route.errors, *ANY_ROUTE]
    if not route.is_open:
        kinds += SIGNED_IN
    if route.parameters or route.query is not None or route.body is not None or route.headers:
        kinds += READING
    if route.body is not None:
        kinds.append(RequestTooLarge)
    found: dict[int, list[str]] = {}
    for kind in dict.fromkeys(kinds):
        found.setdefault(problems.status_of(kind), []).append(kind.code)
    return dict(sorted(found.items()))
