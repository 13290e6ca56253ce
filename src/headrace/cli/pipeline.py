"""`headrace pipeline`: the lake that a store's event log becomes."""

from __future__ import annotations

from headrace.cli.pipeline_redrive import redrive
from headrace.cli.pipeline_run import compact, run, status, upgrade
from headrace.cli.settings import group


@group(
    "pipeline",
    examples=(
        "headrace pipeline run --lake lake",
        "headrace pipeline status --lake lake",
        "headrace pipeline redrive --lake lake --where \"code = 'E503'\" --dry-run",
    ),
)
def pipeline() -> None:
    """Make tables of a store's history in a lake, keep them up to date, and act on them. Needs Spark."""


for _command in (run, status, compact, upgrade, redrive):
    pipeline.add_command(_command)
