"""The tokens of claims: the specification has none, and its writes are fenced all the same."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime

from headrace import lifecycle
from headrace.contracts.job_store.result import ErrorCode, Refused
from headrace.model import Job

CLAIMS_MAX = 100_000
"""Claims remembered at most; the oldest are forgotten first."""


class Claims:
    """The claims made through one store or manager, by job.

    A later claim of the same job through the same object replaces the earlier one: with no token in the
    specification's calls, two workers that share the object cannot be told apart. Two that do not can.
    """

    def __init__(self) -> None:
        self._tokens: OrderedDict[str, str] = OrderedDict()

    def remember(self, job: Job) -> None:
        assert job.token is not None
        self._tokens[job.id] = job.token
        self._tokens.move_to_end(job.id)
        while len(self._tokens) > CLAIMS_MAX:
            self._tokens.popitem(last=False)

    def forget(self, job_id: str) -> None:
        """The job has ended. Until then a claim is kept, used up or lost: it must go on being refused."""
        self._tokens.pop(job_id, None)

    def fence(self, job: Job, now: datetime, *, shown: str | None = None) -> str:
        """The token to write with: the one shown, else the one remembered, else the present one.

        Raises why the claim does not hold, if it does not.
        """
        token = shown or self._tokens.get(job.id) or job.token or ""
        if not job.is_leased and not job.is_terminal:
            raise Refused(
                ErrorCode.JOB_NOT_IN_PROGRESS,
                f"job {job.id} is not in progress; nothing was changed",
            )
        lifecycle.check_lease(job, token, now)
        return token
