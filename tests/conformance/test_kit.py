"""Every case of the conformance kit on every store."""

from __future__ import annotations

import pytest

from headrace.testing.conformance import Case, suites

CASES = [case for suite in suites() for case in suite.cases]


# A known defect, open: under many claims at once a claim on PostgreSQL may come back short although jobs
# are left. They are not lost, the next claim takes them; but the other stores do not do this.
SHORT_UNDER_CONTENTION = ("each job to one claim only", "every submitted job reaches a worker")


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
async def test_case(case: Case, store_url: str, request: pytest.FixtureRequest) -> None:
    known = any(words in case.title for words in SHORT_UNDER_CONTENTION)
    if known and store_url.startswith("postgresql"):
        request.applymarker(pytest.mark.xfail(reason="short claims under contention", strict=False))
    await case.run(store_url)
