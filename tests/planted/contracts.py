"""Defects of `backend_api` and `job_store`, each with the part of its suite that must object."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from headrace.contracts.backend_api import backend, submission
from headrace.spec import JobSpec
from tests.planted.defect import Defect, patched

START = datetime(2026, 1, 1, tzinfo=UTC)
"""Of the kit's clock."""


class Planted(NamedTuple):
    suite: str
    part: str
    defect: Defect


right_spec = submission.spec_of


def created_ahead_is_due_now(job: Any, payload_bytes_max: int) -> JobSpec:
    spec = right_spec(job, payload_bytes_max)
    return spec if spec.run_at is None else replace(spec, run_at=min(spec.run_at, START))


def only_the_preset_size(given: int | None, what: str) -> int:
    return 1 << 20


DEFECTS: dict[str, Planted] = {
    "a job dated ahead waits for its time": Planted(
        "backend_api",
        "9. Ordering",
        patched(backend, "END_OF_TIME", datetime(1970, 1, 1, tzinfo=UTC)),
    ),
    "a job dated ahead stands where it came": Planted(
        "backend_api", "9. Ordering", patched(backend, "spec_of", created_ahead_is_due_now)
    ),
    "a configured size is not heeded": Planted(
        "backend_api",
        "CompleteJob: Postconditions",
        patched(backend, "_bytes_max", only_the_preset_size),
    ),
}
