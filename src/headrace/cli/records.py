"""What `--json` prints. Field names are stable and documented in docs/reference/cli.md.

A lease token is a worker's proof, so no record has it. Payloads, results and checkpoints go out as
the JSON that is stored; where they are encrypted and there is no key, as an `envelope.Notice`.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from headrace.manager import FailedAttempt
from headrace.model import (
    Category,
    DependencyKind,
    Edge,
    State,
)
from headrace.redaction import Redacted


class FailedAttemptRecord(Redacted, frozen=True, kw_only=True):
    """One of the last attempts that failed."""

    attempt: int
    at: datetime
    state: State
    category: Category
    code: str | None
    message: str | None
    """Null: it is encrypted, and there is no key for it."""
    traceback: str | None


class DependencyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a dependency, seen from the other."""

    job_id: str
    kind: DependencyKind
    outcome: State | None
    """How the job that comes first ended; null while it has not."""


def failed_attempt_record(attempt: FailedAttempt) -> FailedAttemptRecord:
    names = FailedAttemptRecord.__struct_fields__
    return FailedAttemptRecord(**{name: getattr(attempt, name) for name in names})


def parent_record(edge: Edge) -> DependencyRecord:
    """The job that the other waits for."""
    return DependencyRecord(job_id=edge.parent_id, kind=edge.kind, outcome=edge.outcome)


def child_record(edge: Edge) -> DependencyRecord:
    """The job that waits."""
    return DependencyRecord(job_id=edge.child_id, kind=edge.kind, outcome=edge.outcome)
