"""Clocks, and times as stored integers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.clock import (
    STEP_SECONDS,
    ManualClock,
    ShiftedClock,
    StoreClock,
    SystemClock,
    from_us,
    to_us,
)

T0 = datetime(2026, 1, 1, tzinfo=UTC)


@given(st.datetimes(timezones=st.just(UTC)))
def test_times_are_stored_exactly(moment: datetime) -> None:
    assert from_us(to_us(moment)) == moment


@pytest.mark.parametrize("minutes", [10, -10])
def test_a_store_clock_follows_the_store_not_the_host(minutes: int) -> None:
    store_time = datetime.now(UTC) + timedelta(minutes=minutes)
    clock = StoreClock(store_time, round_trip_seconds=0.5)
    assert timedelta(0) <= clock.now() - store_time < timedelta(seconds=2)
    clock.measure(store_time + timedelta(hours=1))
    assert timedelta(hours=1) <= clock.now() - store_time < timedelta(hours=1, seconds=2)


def test_a_store_clock_that_errs_a_little_holds_still() -> None:
    clock = StoreClock(T0)
    first = clock.now()
    clock.measure(T0 - timedelta(seconds=STEP_SECONDS - 1))
    assert clock.now() >= first
    assert clock.set_back_from is None


def test_a_store_clock_that_was_set_back_is_followed_and_tells_how_far_it_had_come() -> None:
    clock = StoreClock(T0)
    clock.measure(T0 + timedelta(hours=1))
    ahead = clock.now()
    for minutes in (0, -10):
        clock.measure(T0 + timedelta(minutes=minutes))
        behind = clock.now() - T0 - timedelta(minutes=minutes)
        assert timedelta(0) <= behind < timedelta(seconds=1)
        assert clock.set_back_from == ahead


def test_a_shifted_clock_jumps_ahead_and_never_back() -> None:
    base = ManualClock(T0)
    clock = ShiftedClock(base)
    clock.advance_to(T0 + timedelta(seconds=60))
    assert clock.now() == T0 + timedelta(seconds=60)
    clock.advance_to(T0)
    base.advance(1)
    assert clock.now() == T0 + timedelta(seconds=61)


def test_the_system_clock_is_aware() -> None:
    assert SystemClock().now().tzinfo is UTC
