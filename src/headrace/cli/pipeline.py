"""`headrace pipeline`: the lake that a store's event log becomes."""

from __future__ import annotations

from headrace.cli.pipeline_redrive import redrive
from headrace.cli.settings import group


@group(
    "pipeline",
    examples=("headrace pipeline redrive --lake lake --where \"code = 'E503'\" --dry-run",),
)
def pipeline() -> None:
    """Work with the lake of a store: its history as tables."""


for _command in (redrive,):
    pipeline.add_command(_command)
