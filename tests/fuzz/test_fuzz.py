"""A small fuzz on every store; `make fuzz` is the large one. `python -m tests.fuzz --seed …` repeats it."""

from __future__ import annotations

import pytest

from tests.fuzz.commands import fuzz_commands
from tests.fuzz.fuzz import fuzz

SEED = 20
CALLS = {"memory": 2500, "sqlite": 700, "postgresql": 700, "redis": 700}


@pytest.mark.filterwarnings("ignore")  # what a refused call never awaited
async def test_every_verb_refuses_bad_input_by_name_and_changes_nothing(store_url: str) -> None:
    """`fuzz` itself looks whether the store still works, and an innocent job is as it was."""
    scheme = store_url.partition(":")[0]
    report = await fuzz(store_url, seed=SEED, calls=CALLS[scheme])
    assert report.calls == CALLS[scheme] // 5 * 5
    assert len(report.by_place) > 150  # verbs, found by looking at the classes
    assert not report.leaks, str(report)


@pytest.mark.filterwarnings("ignore")
def test_every_command_refuses_wrong_words_by_name(store_url: str) -> None:
    calls = 60 if store_url.startswith(("memory", "sqlite")) else 15
    report = fuzz_commands(store_url, seed=SEED, calls=calls)
    assert not report.leaks, str(report)
