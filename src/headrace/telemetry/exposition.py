"""Metrics as Prometheus scrapes them: those of this process, and those of several as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import REGISTRY, Collector

from headrace.app import Headrace
from headrace.manager import Overview
from headrace.telemetry.metrics import STORE_METRICS, Metrics, queue_metrics

PROCESS_LABEL = "process"


class ProcessMetrics:
    """What a worker process exports: its own metrics, and on request those read from the store."""

    def __init__(self, app: Headrace) -> None:
        """From now on the application tells what its workers do."""
        metrics = Metrics()
        app.observers = (*app.observers, metrics)
        self._store = CollectorRegistry()
        metrics.watch(app, self._store)

    def scrape(self, accept: str, *, store: bool) -> tuple[str, bytes]:
        """Content type and text; `store`: with what every process would say alike."""
        encoder, content_type = choose_encoder(accept)
        return content_type, encoder(_Joined(REGISTRY, self._store) if store else REGISTRY)


def store_scrape(state: Overview, accept: str) -> tuple[str, bytes]:
    """Content type and text of what is read from the store, for whoever has read it already."""
    encoder, content_type = choose_encoder(accept)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Given(queue_metrics(state)))
    return content_type, encoder(registry)


def merged(accept: str, texts: Mapping[str, str]) -> tuple[str, bytes]:
    """One scrape made of those of several processes: each sample says which it is from.

    Except what was read from the store, which is the same whoever reads it.
    """
    encoder, content_type = choose_encoder(accept)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Merged(texts))
    return content_type, encoder(registry)


class _Joined(CollectorRegistry):
    """Several registries as one."""

    def __init__(self, *registries: CollectorRegistry) -> None:
        super().__init__()
        self._registries = registries

    def collect(self) -> Iterator[Metric]:
        return chain.from_iterable(registry.collect() for registry in self._registries)


class _Given(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        return iter(self._metrics)


class _Merged(Collector):
    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for process, text in self._texts.items():
            for family in text_string_to_metric_families(text):
                into = families.setdefault(
                    family.name, Metric(family.name, family.documentation, family.type)
                )
                own = {} if family.name in STORE_METRICS else {PROCESS_LABEL: process}
                for sample in family.samples:
                    into.samples.append(sample._replace(labels={**sample.labels, **own}))
        yield from families.values()
