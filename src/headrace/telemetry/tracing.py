"""OpenTelemetry: one span per verb, per submission and per attempt. Needs headrace[opentelemetry].

    tracing = Tracing()
    app = Headrace(url, middleware=[tracing.middleware], observers=[tracing.observer])

A run is linked to the submission it came from: the trace travels as the job's correlation id, unless the
submitter gave one of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from msgspec.structs import replace
from opentelemetry import trace
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from headrace.app import Context, Middleware
from headrace.app.middleware import Run, Submit
from headrace.app.observers import Observer
from headrace.errors import Snooze
from headrace.model import Job
from headrace.spec import JobSpec

_PARTS = 4
_VERSION = "00"


class Tracing:
    """Both halves, on one tracer."""

    def __init__(self, tracer: trace.Tracer | None = None) -> None:
        tracer = tracer or trace.get_tracer("headrace")
        self.middleware: Middleware = _Spans(tracer)
        self.observer: Observer = _Verbs(tracer)


class _Verbs(Observer):
    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer

    def verb(self, name: str) -> AbstractContextManager[object]:
        return self._tracer.start_as_current_span(f"headrace.store.{name}", kind=SpanKind.CLIENT)


class _Spans(Middleware):
    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer

    async def submit(self, specs: Sequence[JobSpec], call_next: Submit) -> tuple[Job, ...]:
        with self._tracer.start_as_current_span("headrace.submit", kind=SpanKind.PRODUCER) as span:
            parent = traceparent(span.get_span_context())
            jobs = await call_next(
                [
                    spec
                    if spec.correlation_id is not None
                    else replace(spec, correlation_id=parent)
                    for spec in specs
                ]
            )
            span.set_attribute("headrace.jobs", len(jobs))
            if len(jobs) == 1:
                span.set_attribute("headrace.job_id", jobs[0].id)
                span.set_attribute("headrace.type", jobs[0].type)
            return jobs

    async def run(self, context: Context, call_next: Run) -> Any:
        job = context.job
        origin = span_context(job.correlation_id)
        with self._tracer.start_as_current_span(
            f"headrace.run {job.type}",
            kind=SpanKind.CONSUMER,
            links=[] if origin is None else [Link(origin)],
            attributes={
                "headrace.job_id": job.id,
                "headrace.type": job.type,
                "headrace.queue": job.queue,
                "headrace.tenant": job.tenant,
                "headrace.attempt": job.attempt,
            },
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                result = await call_next(context)
            except Snooze:
                raise  # not an error
            except BaseException as error:
                is_secret = job.seals is not None  # its messages may quote what it holds
                span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                if not is_secret:
                    span.record_exception(error)
                raise
            span.set_status(Status(StatusCode.OK))
            return result


def traceparent(context: SpanContext) -> str:
    """As the W3C writes it."""
    return f"{_VERSION}-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def span_context(text: str | None) -> SpanContext | None:
    """Back from `traceparent`; None for any other correlation id."""
    parts = (text or "").split("-")
    if len(parts) != _PARTS or parts[0] != _VERSION:
        return None
    try:
        found = SpanContext(
            trace_id=int(parts[1], 16),
            span_id=int(parts[2], 16),
            is_remote=True,
            trace_flags=TraceFlags(int(parts[3], 16)),
        )
    except ValueError:
        return None
    return found if found.is_valid else None
