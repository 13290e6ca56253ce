"""Every case of the conformance kit on every store."""

from __future__ import annotations

import pytest

from headrace.testing.conformance import Case, suites

CASES = [case for suite in suites() for case in suite.cases]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
async def test_case(case: Case, store_url: str) -> None:
    await case.run(store_url)
