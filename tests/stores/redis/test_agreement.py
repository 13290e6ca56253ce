"""Redis against the memory store, step by step, over random commands."""

from __future__ import annotations

from hypothesis.stateful import run_state_machine_as_test

from tests.agreement.machine import Agreement
from tests.agreement.test_agreement import SETTINGS
from tests.stores.redis.server import fresh_url


def test_redis_agrees_with_memory() -> None:
    class OnRedis(Agreement):
        def fresh_url(self) -> str:
            return fresh_url()

    run_state_machine_as_test(OnRedis, settings=SETTINGS)
