"""Deliberate defects of the report: its tests must catch every one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.planted import report
from tests.report import test_advice, test_truth

ADVISED = ("an outage", "failing for good", "idle slots")


def check(name: str, lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if name == report.COMMAND:
        test_truth.test_the_command_beside_an_error_finds_its_jobs_and_no_others(lake, capsys)
    elif name == report.ADVICE:
        for case in ADVISED:
            test_advice.test_advice_comes_with_its_evidence(case, lake / case)
    else:
        CHECKS[name](lake)


CHECKS: dict[str, Callable[[Path], None]] = {
    report.HALF: test_truth.test_half_and_most_of_two_types_are_not_the_longest_of_all,
    report.MARKED: test_truth.test_the_wait_is_marked_where_a_promise_of_starts_is_broken,
    report.COST: test_truth.test_what_failed_for_good_at_once_is_no_cost_of_retries,
    report.SHORT: test_truth.test_a_short_time_begins_with_its_hour_and_says_so,
    report.MINUTES: test_truth.test_of_a_short_time_errors_are_by_the_minute,
    report.BEFORE: test_truth.test_figures_stand_beside_those_of_the_time_before,
    report.LABELS: test_truth.test_workers_of_like_names_are_told_apart,
    report.BURNED: test_truth.test_what_never_burned_has_no_bar,
}


@pytest.mark.parametrize("name", report.OF_THE_REPORT)
def test_the_tests_object(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checked, defect = report.OF_THE_REPORT[name]
    with defect():
        try:
            check(checked, tmp_path, capsys)
        except (AssertionError, KeyError, ValueError, TypeError, pytest.fail.Exception):
            return
    raise AssertionError(f"no test notices that {name}")
