"""Defects in keys that are held for a time, and in changing what a user says of a job."""

from __future__ import annotations

from headrace.manager import submission
from headrace.manager.placement import KeyRule
from headrace.policy import Policy
from headrace.spec import JobSpec
from tests.planted.defect import Defect, patched


def hold_ignored(one: JobSpec, policy: Policy) -> KeyRule:
    return KeyRule(policy.key_window_seconds, policy.key_released_when_terminal)


def hold_ends_with_the_job(one: JobSpec, policy: Policy) -> KeyRule:
    seconds = one.key_hold_seconds or policy.key_window_seconds
    return KeyRule(seconds, policy.key_released_when_terminal)


DEFECTS: dict[str, Defect] = {
    "the time to hold a key is ignored": patched(submission, "_key_rule", hold_ignored),
    "a key held for a time is given up with its job": patched(
        submission, "_key_rule", hold_ends_with_the_job
    ),
}
