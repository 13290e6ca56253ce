"""Slow handlers of a web application as jobs: 202 at once, then polling for the state and the result.

    endpoints = AsyncEndpoints(app)
    endpoints.async_endpoint("/reports/{year}", make_report, headers=["X-Region"])
    api.mount("/async", endpoints.asgi)      # FastAPI and Starlette

`POST /async/reports/2026` submits a job of the task `make_report`, which is called with an `HttpRequest`, and
answers 202 with the address of `GET /async/jobs/ID`. It is an ASGI application: any host can mount it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace import codec, validation
from headrace.api import problems
from headrace.api.route import KEY_HEADER
from headrace.app import Headrace
from headrace.app.task import Task
from headrace.errors import HeadraceError, InvalidRequest, JobFailed, JobNotFound, KeyReused
from headrace.model import Job, State

JOB_HEADER = "Headrace-Job"
TAG = "async-endpoint"
"""Only jobs with this tag are told of: the others of the store are nobody's business here."""
RETRY_SECONDS = 1
BODY_BYTES_MAX = codec.PAYLOAD_BYTES_DEFAULT


@dataclass(frozen=True)
class HttpRequest:
    """What the client has sent, as the task is called with it."""

    path: str
    route: dict[str, str] = field(default_factory=dict)
    """The parameters of the path."""
    query: dict[str, list[str]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    """Those that the endpoint asks for, in lower case."""
    body: Any = None
    """As JSON."""


Serve = Callable[[Request], Awaitable[Response]]


class AsyncEndpoints:
    """Endpoints that answer at once and leave the work to a job, and the routes to ask for it.

    A client that sends its request again under the same `Idempotency-Key` is given the same job.
    """

    def __init__(self, app: Headrace) -> None:
        self._app = app
        self.asgi = Starlette(
            routes=[
                Route("/jobs/{job_id}", self._guarded(self._status), name="job_status"),
                Route("/jobs/{job_id}/result", self._guarded(self._result), name="job_result"),
            ]
        )

    def async_endpoint(
        self,
        path: str,
        task: Task[..., Any],
        *,
        methods: Iterable[str] = ("POST",),
        headers: Iterable[str] = (),
    ) -> None:
        """Requests to this path become jobs of the task, with these headers of theirs."""
        kept = tuple(name.lower() for name in headers)

        async def accept(request: Request) -> Response:
            return await self._accept(request, task, kept)

        self.asgi.router.routes.append(Route(path, self._guarded(accept), methods=list(methods)))

    def _guarded(self, handler: Serve) -> Serve:
        async def guarded(request: Request) -> Response:
            try:
                return await handler(request)
            except HeadraceError as error:
                problem = problems.problem_of(error)
                problem["type"] = "about:blank"
                return _answer(problem, problem["status"], media_type=problems.MEDIA_TYPE)

        return guarded

    async def _accept(
        self, request: Request, task: Task[..., Any], kept: tuple[str, ...]
    ) -> Response:
        given = HttpRequest(
            path=request.url.path,
            route={name: str(value) for name, value in request.path_params.items()},
            query={name: request.query_params.getlist(name) for name in request.query_params},
            headers={name: request.headers[name] for name in kept if name in request.headers},
            body=await _body(request),
        )
        options: dict[str, Any] = {"tags": [TAG]}
        key = request.headers.get(KEY_HEADER)
        if key is not None:
            options["key"] = validation.check_key(key.strip().strip('"'))
        spec = task.options(**options).spec(given)
        job = (await self._app.submit_many([spec]))[0]
        if key is not None and codec.encode(job.payload) != codec.encode(spec.payload):
            raise KeyReused(f"the key {key!r} stands for another request; nothing was stored")
        place = str(request.url_for("job_status", job_id=job.id))
        headers = {"Location": place, "Retry-After": str(RETRY_SECONDS), JOB_HEADER: job.id}
        return _answer(_told(request, job), 202, headers=headers)

    async def _status(self, request: Request) -> Response:
        job = await self._job(request)
        headers = {} if job.is_terminal else {"Retry-After": str(RETRY_SECONDS)}
        return _answer(_told(request, job), 200, headers=headers)

    async def _result(self, request: Request) -> Response:
        """200 with the result, 202 while there is none yet, 409 where there will be none."""
        job = await self._job(request)
        if not job.is_terminal:
            headers = {"Retry-After": str(RETRY_SECONDS)}
            return _answer(_told(request, job), 202, headers=headers)
        if job.state is not State.COMPLETED:
            raise JobFailed(f"job {job.id} is {job.state}: it has no result", job)
        return _answer(job.result, 200)

    async def _job(self, request: Request) -> Job:
        job_id = request.path_params["job_id"]
        job = await self._app.get(job_id)
        if TAG not in job.tags:
            raise JobNotFound(job_id)
        return job


async def _body(request: Request) -> Any:
    size, chunks = 0, []
    async for chunk in request.stream():
        size += len(chunk)
        if size > BODY_BYTES_MAX:
            raise InvalidRequest(
                f"the body has more than {BODY_BYTES_MAX} bytes; nothing was stored"
            )
        chunks.append(chunk)
    raw = b"".join(chunks)
    try:
        return msgspec.json.decode(raw) if raw else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"the body is not JSON: {error}; nothing was stored") from error


def _told(request: Request, job: Job) -> dict[str, Any]:
    """Without what went wrong, or where it runs: the client is not the operator."""
    return {
        "id": job.id,
        "state": job.state,
        "progress": job.progress,
        "created_at": job.created_at,
        "finalized_at": job.finalized_at,
        "status": str(request.url_for("job_status", job_id=job.id)),
        "result": str(request.url_for("job_result", job_id=job.id)),
    }


def _answer(
    content: Any,
    status: int,
    *,
    headers: dict[str, str] | None = None,
    media_type: str = "application/json",
) -> Response:
    return Response(msgspec.json.encode(content), status, headers=headers, media_type=media_type)
