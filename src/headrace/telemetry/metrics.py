"""Prometheus: what runs, how long it waits and takes, how it ends. Needs headrace[prometheus].

    metrics = Metrics()
    app = Headrace(url, observers=[metrics])
    metrics.watch(app)      # the state of the queues, read from the store when it is scraped

`headrace worker --metrics-port 9464` does all of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import REGISTRY, Collector

from headrace.app import Headrace
from headrace.app.observers import Observer
from headrace.errors import HeadraceError
from headrace.manager import (
    CancelAcknowledged,
    Completed,
    Failed,
    Outcome,
    Overview,
    Released,
    Snoozed,
    Stopped,
)
from headrace.model import Job

_DEPTH = "headrace_jobs"
_OLDEST = "headrace_oldest_ready_seconds"
STORE_METRICS = frozenset((_DEPTH, _OLDEST))
"""Read from the store: every process that watches says the same."""
_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800, 3600)


class Metrics(Observer):
    """Counters and histograms of this process, on a registry (the global one unless given)."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.registry = registry
        self._wait = Histogram(
            "headrace_job_wait_seconds",
            "From ready to claimed.",
            ["queue", "type"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._run = Histogram(
            "headrace_job_run_seconds",
            "How long handlers ran.",
            ["queue", "type"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._outcomes = Counter(
            "headrace_attempts",
            "Attempts by how they ended.",
            ["queue", "type", "outcome"],
            registry=registry,
        )
        self._verbs = Histogram(
            "headrace_store_seconds",
            "How long the store took.",
            ["verb"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._errors = Counter(
            "headrace_store_errors", "Verbs that raised.", ["verb", "error"], registry=registry
        )

    def verb_ended(self, name: str, seconds: float, error: BaseException | None) -> None:
        self._verbs.labels(name).observe(seconds)
        if error is not None:
            self._errors.labels(name, type(error).__name__).inc()

    def attempt_ended(self, job: Job, outcome: Outcome | None, seconds: float) -> None:
        self._run.labels(job.queue, job.type).observe(seconds)
        if job.assigned_at is not None and job.scheduled_at is not None:
            waited = (job.assigned_at - job.scheduled_at).total_seconds()
            self._wait.labels(job.queue, job.type).observe(max(0.0, waited))
        self._outcomes.labels(job.queue, job.type, outcome_name(outcome)).inc()

    def watch(self, app: Headrace, registry: CollectorRegistry | None = None) -> None:
        """Have the depth of the queues and the age of what waits in every scrape (of another registry)."""
        (registry or self.registry).register(_Queues(app))


class _Queues(Collector):
    """Asks the store at every scrape: from a thread without an event loop, so through the bridge."""

    def __init__(self, app: Headrace) -> None:
        self._app = app

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        try:
            state = self._app.sync.overview()
        except HeadraceError:
            return  # the other metrics, of this process, are told all the same
        yield from queue_metrics(state)


def queue_metrics(state: Overview) -> Iterator[Metric]:
    """The depth of the queues, and the age of what waits."""
    depth = GaugeMetricFamily(_DEPTH, "Jobs by state.", labels=["tenant", "queue", "state"])
    for tally in state.tallies:
        depth.add_metric([tally.tenant, tally.queue, tally.state.value], tally.jobs)
    oldest = GaugeMetricFamily(
        _OLDEST,
        "How long the oldest job that is due has waited.",
        labels=["tenant", "queue"],
    )
    for (tenant, queue), seconds in state.oldest_ready.items():
        oldest.add_metric([tenant, queue], seconds)
    yield depth
    yield oldest


def outcome_name(outcome: Outcome | None) -> str:
    """One word for each way an attempt ends; failures by their category."""
    match outcome:
        case Completed():
            return "completed"
        case Failed(failure=failure):
            return f"failed_{failure.category.value}"
        case Snoozed():
            return "snoozed"
        case Released():
            return "released"
        case Stopped() | CancelAcknowledged():
            return "cancelled"
        case None:
            return "lease_lost"
        case _:
            assert_never(outcome)
