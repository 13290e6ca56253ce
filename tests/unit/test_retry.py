"""Backoffs: formulas, jitter, caps, and what is stored with a job."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import retry
from headrace.duration import DELAY_SECONDS_MAX
from headrace.errors import InvalidInput
from headrace.retry import (
    Constant,
    Custom,
    Exponential,
    FullJitter,
    Linear,
    NoBackoff,
    StoredBackoff,
    Table,
)

failures = st.integers(1, 10_000)
draws = st.floats(0, 1, exclude_max=True)
seconds = st.floats(0.001, 1e6)

BACKOFFS: list[StoredBackoff] = [
    NoBackoff(),
    Constant(initial=3.0, jitter=False),
    Linear(initial=2.0, cap=7.0, jitter=False),
    Exponential(initial=1.0, multiplier=3.0, cap=100.0, jitter=False),
    FullJitter(initial=0.5, cap=30.0),
    Table((1.0, 5.0)),
]


def test_formulas() -> None:
    assert [NoBackoff().delay(n) for n in (1, 2, 9)] == [0, 0, 0]
    assert [Constant(initial=3.0, jitter=False).delay(n) for n in (1, 2, 9)] == [3, 3, 3]
    assert [Linear(initial=2.0, cap=7.0, jitter=False).delay(n) for n in (1, 2, 3, 4, 99)] == [
        2,
        4,
        6,
        7,
        7,
    ]
    exponential = Exponential(initial=1.0, multiplier=3.0, cap=100.0, jitter=False)
    assert [exponential.delay(n) for n in (1, 2, 3, 4, 5, 6)] == [1, 3, 9, 27, 81, 100]
    assert [FullJitter(initial=0.5, cap=30.0).delay(n, 0.5) for n in (1, 2, 3, 99)] == [
        0.25,
        0.5,
        1,
        15,
    ]


@given(failures, draws, seconds, seconds)
def test_no_delay_is_past_its_cap_or_negative(
    n: int, draw: float, initial: float, cap: float
) -> None:
    for backoff in (Linear(initial, cap), Exponential(initial, 2.0, cap), FullJitter(initial, cap)):
        assert 0 <= backoff.delay(n, draw) <= cap


@given(failures, draws, seconds)
def test_jitter_is_within_ten_percent(n: int, draw: float, initial: float) -> None:
    exact = Linear(initial, cap=DELAY_SECONDS_MAX, jitter=False).delay(n)
    spread = Linear(initial, cap=DELAY_SECONDS_MAX).delay(n, draw)
    assert abs(spread - exact) <= 0.1 * exact * (1 + 1e-9)


@given(st.integers(1, 40), seconds)
def test_full_jitter_spans_zero_to_the_bound(n: int, initial: float) -> None:
    backoff = FullJitter(initial, cap=DELAY_SECONDS_MAX)
    assert backoff.delay(n, 0.0) == 0
    bound = min(initial * 2.0 ** (n - 1), DELAY_SECONDS_MAX)
    assert backoff.delay(n, 0.999) == pytest.approx(0.999 * bound)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Constant("soon"),
        lambda: Constant(float("nan")),
        lambda: Linear(float("inf")),
        lambda: Exponential(-1),
        lambda: Exponential(cap=1e300),
        lambda: Exponential(multiplier=float("nan")),
        lambda: Exponential(multiplier="2"),  # type: ignore[arg-type]
        lambda: FullJitter(None),  # type: ignore[arg-type]
        lambda: FullJitter(True),
        lambda: Linear([1]),  # type: ignore[arg-type]
        lambda: Exponential(jitter="yes"),  # type: ignore[arg-type]
        lambda: Custom(lambda n, initial, cap: 1.0, cap="never"),
    ],
)
def test_a_backoff_that_cannot_be_is_refused_where_it_is_made(wrong: Callable[[], Any]) -> None:
    with pytest.raises(InvalidInput, match="of a backoff"):
        wrong()


def test_a_backoff_takes_durations_as_text() -> None:
    assert Exponential("2s", cap="1h30m") == Exponential(2.0, cap=5400.0)
    assert Constant(timedelta(minutes=1)) == Constant(60.0)
    assert retry.decode(retry.encode(Linear("1m"))) == Linear(60.0)


def test_custom_gets_what_the_specification_says() -> None:
    calls = []

    def function(n: int, initial: float, cap: float) -> float:
        calls.append((n, initial, cap))
        return n * 10.0

    backoff = Custom(function, initial=2.0, cap=25.0)
    assert [backoff.delay(n) for n in (1, 2, 3)] == [10, 20, 25]
    assert calls == [(1, 2.0, 25.0), (2, 2.0, 25.0), (3, 2.0, 25.0)]
    for bad in (-1.0, float("inf"), float("nan"), "x", None):
        assert Custom(lambda *_, bad=bad: bad, cap=25.0).delay(1) == 25
    assert Custom(lambda *_: 1 / 0, cap=25.0).delay(1) == 25


class Biting(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it bites")


def _bites(*_: float) -> float:
    raise Biting


def test_what_a_custom_one_says_can_be_written_down() -> None:
    table = Custom(lambda n, *_: n * 10.0, cap=25.0).table(max_attempts=4)
    assert table == Table((10, 20, 25))
    assert [table.delay(n) for n in (1, 2, 3, 4, 99)] == [10, 20, 25, 25, 25]
    assert Table(()).delay(1) == 0
    assert Custom(lambda *_: 1 / 0).table(max_attempts=1) == Table(())
    for bad in (lambda *_: 1 / 0, lambda *_: -1.0, lambda *_: float("nan"), lambda *_: "x"):
        with pytest.raises(InvalidInput, match="custom backoff for retry 1"):
            Custom(bad).table(max_attempts=2)  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(InvalidInput, match="retry 1 raised Biting"):
        Custom(_bites).table(max_attempts=2)
    for most in (None, retry.TABLE_DELAYS_MAX + 2):
        with pytest.raises(InvalidInput, match="max_attempts"):
            Custom(lambda *_: 1.0).table(most)


@pytest.mark.parametrize("backoff", BACKOFFS, ids=lambda backoff: type(backoff).__name__)
def test_stored_and_read_back(backoff: StoredBackoff) -> None:
    assert retry.decode(retry.encode(backoff)) == backoff


def test_pauses_double_up_to_the_longest() -> None:
    assert list(itertools.islice(retry.doubling(0.5, 3.0), 5)) == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert next(retry.doubling(5.0, 1.0)) == 1.0
