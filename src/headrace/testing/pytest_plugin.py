"""A plugin of pytest, found by itself: `headrace_harness` and `headrace_sync_harness`, for tests of tasks.

    @pytest.fixture
    def headrace_app():
        return shop.app

    async def test_a_receipt_is_sent(headrace_harness):
        await buy.submit("4000")
        await headrace_harness.drain()
        headrace_harness.assert_submitted(receipt, card="4000")

Nothing of Headrace is imported until a test asks for a fixture: every run of pytest loads this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace import Headrace
    from headrace.testing import Harness, SyncHarness

MARK = "headrace"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARK}(inline=True): what is submitted has run when `submit` returns"
    )


@pytest.fixture
def headrace_app() -> Headrace:
    """Your application: define a fixture of this name that returns it."""
    raise pytest.UsageError(
        "the fixture headrace_app is yours to define, in conftest.py: "
        "it returns the application whose tasks are tested"
    )


@pytest.fixture
def headrace_harness(headrace_app: Headrace, request: pytest.FixtureRequest) -> Iterator[Harness]:
    """The application on a store in memory, with a clock that the test moves; for async tests."""
    with _sync_harness(headrace_app, request) as harness:
        yield harness.asynchronous


@pytest.fixture
def headrace_sync_harness(
    headrace_app: Headrace, request: pytest.FixtureRequest
) -> Iterator[SyncHarness]:
    """The same for tests without an event loop."""
    with _sync_harness(headrace_app, request) as harness:
        yield harness


def _sync_harness(app: Headrace, request: pytest.FixtureRequest) -> SyncHarness:
    from headrace.testing import SyncHarness  # noqa: PLC0415 - pytest runs that need none pay for none

    mark = request.node.get_closest_marker(MARK)
    return SyncHarness(app, **({} if mark is None else mark.kwargs))
