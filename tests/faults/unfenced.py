"""The application of the storm with a defect planted: lease tokens are not looked at."""

from __future__ import annotations

from headrace import lifecycle
from tests.faults.app import app

lifecycle.check_lease = lambda job, token, now: None

__all__ = ["app"]
