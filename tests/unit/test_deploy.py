"""The files under deploy/: whatever can be checked of them without a cluster."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from prometheus_client import CollectorRegistry

from headrace.cli.app import headrace
from headrace.telemetry.metrics import STORE_METRICS, Metrics
from headrace.worker.settings import Settings

yaml: Any = import_module("yaml")

DEPLOY = Path(__file__).parents[2] / "deploy"
PRODUCTION = DEPLOY.parent / "docs/howto/production.md"
LABELS = {"tenant", "queue", "state", "type", "outcome", "verb", "error", "le", "process"}
HELD = Settings().grace_seconds + Settings().stop_seconds


def documents(name: str) -> list[Any]:
    return [one for one in yaml.safe_load_all((DEPLOY / name).read_text()) if one is not None]


def kind(name: str) -> Any:
    (found,) = (one for one in documents("kubernetes.yaml") if one["kind"] == name)
    return found


def commands() -> Iterator[tuple[str, list[str]]]:
    compose = documents("compose.yaml")[0]["services"]
    yield "compose", compose["migrate"]["command"]
    for name in ("Job", "Deployment"):
        yield name, kind(name)["spec"]["template"]["spec"]["containers"][0]["command"]
    (line,) = (
        line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if line.startswith("CMD ")
    )
    yield "Dockerfile", json.loads(line.removeprefix("CMD "))


def expressions() -> Iterator[str]:
    for group in documents("prometheus-rules.yaml")[0]["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]
    for trigger in documents("keda.yaml")[0]["spec"]["triggers"]:
        yield trigger["metadata"]["query"]
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield target["expr"]
    for variable in board["templating"]["list"]:
        if isinstance(variable["query"], dict):
            yield variable["query"]["query"]


@pytest.mark.parametrize(("where", "words"), list(commands()))
def test_every_command_is_one_that_headrace_has(where: str, words: list[str]) -> None:
    assert words[0] == "headrace", where
    command: click.Command = headrace
    context, rest = _context(command), words[1:]
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command, context = found, _context(found, name)
    command.make_context(shlex.join(words), rest, context)  # raises where an option is unknown


def _context(command: click.Command, name: str | None = None) -> click.Context:
    """With the options for help of the whole command line: click keeps those that it is first asked for."""
    return click.Context(command, info_name=name, **headrace.context_settings)


def test_every_metric_and_label_is_one_that_a_worker_exports() -> None:
    registry = CollectorRegistry()
    Metrics(registry)
    exported = {
        f"{family.name}{suffix}"
        for family in registry.collect()
        for suffix in {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}[
            family.type
        ]
    } | STORE_METRICS
    named: set[str] = set()
    for expression in expressions():
        named |= set(re.findall(r"\bheadrace_\w+", expression))
        used = re.findall(r"[{,](\w+)(?:=~?|!~|!=)", expression)
        for grouped in re.findall(r"\bby \(([^)]*)\)", expression):
            used += [one.strip() for one in grouped.split(",")]
        assert set(used) <= LABELS, expression
        assert expression.count("(") == expression.count(")"), expression
    assert named <= exported
    assert {"headrace_jobs", "headrace_attempts_total", "headrace_store_seconds_bucket"} <= named


def test_probes_are_asked_where_they_are_answered() -> None:
    pod = kind("Deployment")["spec"]["template"]["spec"]
    (worker,) = pod["containers"]
    ports = {one["name"]: one["containerPort"] for one in worker["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = worker[probe]["httpGet"]
        assert asked["path"] in ("/live", "/ready")
        assert f"--health-port={ports[asked['port']]}" in worker["command"]
    assert worker["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert worker["livenessProbe"]["httpGet"]["path"] == "/live", "it must not ask for the store"


def test_handlers_are_given_the_time_that_a_worker_gives_them() -> None:
    pod = kind("Deployment")["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > HELD
    compose = documents("compose.yaml")[0]["services"]["worker"]
    assert int(compose["stop_grace_period"].removesuffix("s")) > HELD


def test_every_alert_has_its_paragraph() -> None:
    page = PRODUCTION.read_text()
    for group in documents("prometheus-rules.yaml")[0]["groups"]:
        for rule in group["rules"]:
            assert f"### {rule['alert']}\n" in page
            assert rule["annotations"].keys() == {"summary", "description"}
