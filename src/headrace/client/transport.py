"""Requests to a server, and what becomes of its answers: values, or the errors that it names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import httpx
import msgspec

from headrace import address
from headrace.api import problems
from headrace.api.route import TENANT_HEADER, Route
from headrace.errors import AnswerLost, InvalidInput, StoreClosed, StoreError, StoreUnavailable

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 60.0
CONNECTIONS_MAX = 100
IDLE_SECONDS = 4.0
"""Shorter than servers keep an idle connection (five seconds are usual): none is closed under a request."""
T = TypeVar("T")

_encoder = msgspec.json.Encoder()


class Transport:
    """One server, asked by one event loop."""

    def __init__(self, client: httpx.AsyncClient, shown: str, tenant: str | None = None) -> None:
        self._client = client
        self._shown = shown
        self._tenant = tenant

    @classmethod
    def to(cls, url: str, token: str | None, tenant: str | None = None) -> Transport:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        timeout = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
        limits = httpx.Limits(
            max_connections=CONNECTIONS_MAX,
            max_keepalive_connections=CONNECTIONS_MAX,
            keepalive_expiry=IDLE_SECONDS,
        )
        client = httpx.AsyncClient(
            base_url=url.rstrip("/"), headers=headers, timeout=timeout, limits=limits
        )
        return cls(client, address.shown(url), tenant)

    async def close(self) -> None:
        await self._client.aclose()

    def acting_for(self, tenant: str) -> Transport:
        """The same server, asked for one tenant."""
        return Transport(self._client, self._shown, tenant)

    async def ask(self, route: Route, answer: type[T], **given: Any) -> T:
        """The answer, as the value it is. What may be given, and what is raised, is as for `tell`."""
        response = await self.tell(route, **given)
        try:
            return msgspec.json.decode(response.content, type=answer)
        except msgspec.DecodeError as error:
            raise StoreError(
                f"{self._shown} gave an answer that cannot be read: {error}"
            ) from error

    async def tell(
        self,
        route: Route,
        *,
        body: Any = None,
        query: msgspec.Struct | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
        wait_seconds: float = 0.0,
        **parameters: str,
    ) -> httpx.Response:
        """Raises the error that the server names.

        StoreUnavailable: nothing was changed. AnswerLost: whether something was is not known.
        """
        given = dict(headers)
        if self._tenant is not None:
            given[TENANT_HEADER] = self._tenant
        content = None
        if body is not None:
            try:
                content = _encoder.encode(body)
            except UnicodeEncodeError as error:
                raise InvalidInput(
                    f"there is text that is no text: {error}; nothing was sent"
                ) from error
            given["Content-Type"] = "application/json"
        request = self._client.build_request(
            route.method,
            route.address(**parameters),
            content=content,
            params=None if query is None else _parameters(query),
            headers=given,
            timeout=httpx.Timeout(ANSWER_SECONDS + wait_seconds, connect=CONNECT_SECONDS),
        )
        try:
            response = await self._client.send(request)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise StoreUnavailable(
                f"{self._shown} cannot be reached ({type(error).__name__}); nothing was changed"
            ) from error
        except httpx.HTTPError as error:
            raise AnswerLost(
                f"{self._shown} went away before its answer came ({type(error).__name__}); whether "
                "anything was changed is not known"
            ) from error
        except RuntimeError as error:
            if self._client.is_closed:
                raise StoreClosed("the connection was closed; nothing was changed") from error
            raise
        if response.is_success:
            return response
        try:
            problem = msgspec.json.decode(response.content, type=dict[str, Any])
        except msgspec.DecodeError:
            problem = {"status": response.status_code}
            problem["detail"] = f"{self._shown} answers {response.status_code}"
        raise problems.error_of(problem)


def _parameters(query: msgspec.Struct) -> dict[str, Any]:
    """Only what differs from the default, in words of a query."""
    given = {}
    for field in msgspec.structs.fields(query):
        value = getattr(query, field.name)
        if value is None or value == field.default:
            continue
        plain = msgspec.to_builtins(value)
        if isinstance(plain, bool):
            plain = "true" if plain else "false"
        given[field.encode_name] = list(plain) if isinstance(plain, tuple) else plain
    return given
