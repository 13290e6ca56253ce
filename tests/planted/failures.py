"""Failures that are told wrongly, or to whoever must not know."""

from __future__ import annotations

from typing import Any

from headrace.manager import attempts
from headrace.manager.context import Context
from headrace.model import Job
from tests.planted.defect import Defect, patched

right_lines = attempts._lines
right_failed_attempts = attempts.failed_attempts


def last_one_for_all(job: Job) -> dict[int, dict[str, Any]]:
    lines = right_lines(job)
    return dict.fromkeys(range(1, job.attempt + 1), lines[max(lines)]) if lines else {}


async def the_first_ones(
    context: Context, job_id: str, limit: int
) -> tuple[attempts.FailedAttempt, ...]:
    return (await right_failed_attempts(context, job_id, 1000))[:limit]


DEFECTS: dict[str, Defect] = {
    "what stands for a message is told as one": patched(
        attempts, "hides_message", lambda job: False
    ),
    "every attempt has the last traceback": patched(attempts, "_lines", last_one_for_all),
    "the first attempts are told, not the last": patched(
        attempts, "failed_attempts", the_first_ones
    ),
}
