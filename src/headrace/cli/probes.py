"""Where a worker answers probes and scrapes, and what is wrong when it cannot."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from headrace.cli.exits import Ended, Exit

if TYPE_CHECKING:
    from headrace.app import Headrace
    from headrace.worker.probes import Probe

_HEALTH = frozenset(("/live", "/ready"))
_METRICS = frozenset(("/metrics",))


class Listening(NamedTuple):
    """The ports that were asked for."""

    host: str
    health_port: int | None
    metrics_port: int | None

    @property
    def used(self) -> bool:
        return self.health_port is not None or self.metrics_port is not None

    @property
    def paths(self) -> Mapping[int, frozenset[str]]:
        """What is answered on each port: both, where they are the same."""
        paths: dict[int, frozenset[str]] = {}
        for port, some in ((self.health_port, _HEALTH), (self.metrics_port, _METRICS)):
            if port is not None:
                paths[port] = paths.get(port, frozenset()) | some
        return paths


@contextlib.contextmanager
def listening(probe: Probe, where: Listening) -> Iterator[None]:
    """Answer while the block lasts: a supervised process its supervisor, any other its own ports."""
    from headrace.worker.probes import SOCKET_VARIABLE, serving

    with contextlib.ExitStack() as stack:
        supervised = os.environ.pop(SOCKET_VARIABLE, None)  # not for the children of handlers
        if supervised is not None:
            stack.enter_context(serving(probe, Path(supervised), _HEALTH | _METRICS))
        else:
            for port, paths in where.paths.items():
                try:
                    stack.enter_context(serving(probe, (where.host, port), paths))
                except OSError as error:
                    raise Ended(
                        Exit.USAGE,
                        "PORT_TAKEN",
                        f"probes cannot be answered on {where.host}:{port}: {error.strerror}",
                    ) from error
        yield


def process_metrics(app: Headrace) -> Callable[[str, bool], tuple[str, bytes]]:
    """What this process exports, from now on."""
    with _extra_needed():
        from headrace.telemetry.exposition import ProcessMetrics

        metrics = ProcessMetrics(app)
    return lambda accept, store: metrics.scrape(accept, store=store)


def merged_metrics() -> Callable[[str, Mapping[str, str]], tuple[str, bytes]]:
    """What several processes export, as one."""
    with _extra_needed():
        from headrace.telemetry.exposition import merged
    return merged


@contextlib.contextmanager
def _extra_needed() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise Ended(
            Exit.USAGE, "MISSING_EXTRA", "metrics need an extra: pip install 'headrace[prometheus]'"
        ) from error
