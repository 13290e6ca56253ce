from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headrace.report import rollup, wording


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 ms"),
        (0.0354, "35 ms"),
        (1.5, "1.5 s"),
        (59.4, "59 s"),
        (59.6, "1 m"),
        (200, "3 m 20 s"),
        (3599.7, "1 h"),
        (7500, "2 h 5 m"),
        (302_400, "3.5 d"),
    ],
)
def test_durations(seconds: float, told: str) -> None:
    assert wording.seconds(seconds) == told


@pytest.mark.parametrize(
    ("ratio", "told"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.5, "50 %"),
        (0.123, "12.3 %"),
        (0.99949, "99.9 %"),
        (0.9999, "> 99.9 %"),
        (0.0001, "< 0.1 %"),
    ],
)
def test_a_share_is_all_or_nothing_only_if_it_is(ratio: float, told: str) -> None:
    assert wording.ratio(ratio) == told


def test_sparklines_show_the_least_amount_and_leave_out_what_is_unknown() -> None:
    assert wording.sparkline([0, 1, 50, 100, None]) == "▁▂▅█ "
    assert wording.sparkline([0, 0]) == "▁▁"
    assert wording.sparkline([]) == ""


def test_lists_and_counts() -> None:
    assert wording.listed(["a", "b", "c"]) == "a, b and c"
    assert wording.listed([]) == ""
    assert wording.counted(1, "job") == "1 job"
    assert wording.counted(2000, "path") == "2,000 paths"


@pytest.mark.parametrize(
    ("span", "step"),
    [
        (timedelta(minutes=30), "minute"),
        (timedelta(days=1), "15 minutes"),
        (timedelta(days=7), "3 hours"),
        (timedelta(days=365), "week"),
    ],
)
def test_steps_fit_the_span(span: timedelta, step: str) -> None:
    assert rollup.per(rollup.step_for(span)) == step


def test_steps_begin_on_whole_steps_and_cover_the_span() -> None:
    since = datetime(2026, 11, 16, 10, 20, tzinfo=UTC)
    steps = rollup.steps_of(since, since + timedelta(hours=2), timedelta(hours=1))
    assert [one.hour for one in steps] == [10, 11, 12]
    assert all(one.minute == 0 for one in steps)


@pytest.mark.parametrize(
    ("rate", "told"),
    [(0, "0"), (0.01, "< 0.1"), (0.4, "0.4"), (9.97, "10"), (15.1, "15"), (14_674.0, "14,674")],
)
def test_rates_have_separators_and_no_needless_decimal(rate: float, told: str) -> None:
    assert wording.rate(rate) == told
