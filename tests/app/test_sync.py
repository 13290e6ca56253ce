"""The bridge for programs without an event loop: what it offers, and that its types are the application's."""

from __future__ import annotations

from headrace import Headrace
from headrace.app import sync
from headrace.app.sync import SyncHeadrace
from tools.sync_types import MADE, module


def test_the_types_are_those_of_the_application() -> None:
    assert MADE.read_text() == module(), "make docs brings it up to date"


def test_what_is_typed_is_there() -> None:
    app = Headrace("memory:")
    named = {name for name in vars(SyncHeadrace) if not name.startswith("_")}
    assert {"submit", "wait", "find", "on", "submit_batch"} <= named
    assert named <= set(dir(app.sync))
    assert {name for name in vars(sync.SyncTransaction) if not name.startswith("_")} <= set(
        dir(app.sync.on(object()))
    )
