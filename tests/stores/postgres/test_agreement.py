"""PostgreSQL against the memory store, step by step, over random commands."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from headrace.clock import ManualClock
from tests.agreement.machine import Agreement
from tests.stores.postgres.server import Schemas

SETTINGS = settings(
    max_examples=12,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("year", [2020, 2090], ids=["all early", "in time"])
def test_postgresql_agrees_with_memory(postgres_schemas: Schemas, year: int) -> None:
    """With a clock behind the server's every job counts as early; with one ahead of it none does, but for
    those that come back: so both ways through a claim are walked.
    """

    class OnPostgres(Agreement):
        def fresh_url(self) -> str:
            self.taken = postgres_schemas.take()
            return self.taken

        def teardown(self) -> None:
            super().teardown()
            if hasattr(self, "taken"):
                asyncio.run(postgres_schemas.give_back(self.taken))

    start = datetime(year, 1, 1, tzinfo=UTC)
    with mock.patch("tests.agreement.pair.ManualClock", partial(ManualClock, start)):
        run_state_machine_as_test(OnPostgres, settings=SETTINGS)
