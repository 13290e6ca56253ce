"""Spans: one per verb, per submission and per attempt, and linked."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from headrace import Headrace
from headrace.telemetry.tracing import Tracing, span_context, traceparent
from headrace.worker import Settings, Worker


async def test_a_run_is_linked_to_its_submission() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = Tracing(provider.get_tracer("test"))
    app = Headrace("memory:", middleware=[tracing.middleware], observers=[tracing.observer])

    @app.task(max_attempts=1)
    async def work(fail: bool) -> None:
        if fail:
            raise ValueError("no")

    async with app:
        await work.submit(fail=False)
        await work.submit(fail=True)
        await Worker(app, Settings(maintenance=False)).drain()
    spans = exporter.get_finished_spans()
    submits = [span for span in spans if span.name == "headrace.submit"]
    runs = [span for span in spans if span.name == "headrace.run work"]
    assert len(submits) == len(runs) == 2
    assert {run.links[0].context.span_id for run in runs} == {
        submit.context.span_id for submit in submits
    }
    assert {run.status.status_code for run in runs} == {StatusCode.OK, StatusCode.ERROR}
    verbs = [span.name for span in spans if span.name.startswith("headrace.store.")]
    assert verbs.count("headrace.store.insert") == 2
    assert "headrace.store.claim" in verbs
    assert "headrace.store.commit" in verbs
    inserts = [span for span in spans if span.name == "headrace.store.insert"]
    assert {span.parent and span.parent.span_id for span in inserts} == {
        submit.context.span_id for submit in submits
    }


def test_other_correlation_ids_are_no_traces() -> None:
    for text in (None, "", "order-7", "00-zz-yy-01", f"00-{0:032x}-{0:016x}-01"):
        assert span_context(text) is None
    text = f"00-{7:032x}-{9:016x}-01"
    found = span_context(text)
    assert found is not None
    assert traceparent(found) == text
