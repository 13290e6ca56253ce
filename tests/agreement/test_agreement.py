"""Every store against the memory store, step by step, over random commands."""

from __future__ import annotations

import itertools
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.agreement.machine import Agreement

SETTINGS = settings(
    max_examples=50,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
)


def test_sqlite_agrees_with_memory(tmp_path: Path) -> None:
    numbers = itertools.count()

    class OnSqlite(Agreement):
        def fresh_url(self) -> str:
            return f"sqlite:///{tmp_path}/{next(numbers)}.db?synchronous=normal"

    run_state_machine_as_test(OnSqlite, settings=SETTINGS)


def test_memory_agrees_with_memory() -> None:
    """The frame itself: two memory stores never differ."""

    class OnMemory(Agreement):
        def fresh_url(self) -> str:
            return "memory:"

    run_state_machine_as_test(OnMemory, settings=SETTINGS)
