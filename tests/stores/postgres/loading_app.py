"""An application whose queues have rules at both ends: none at all, and unusual ones."""

from __future__ import annotations

from headrace import Headrace, Policies, Policy

app = Headrace(
    "memory:",
    policies=Policies(
        queues={
            "q": Policy(
                max_attempts=None,
                lease_seconds=None,
                timeout_seconds=None,
                lifetime_seconds=None,
                key_window_seconds=None,
                key_released_when_terminal=False,
            ),
            "r": Policy(
                max_attempts=7,
                lease_seconds=0.1234567,
                timeout_seconds=1.5,
                lifetime_seconds=12.345678,
                key_window_seconds=3600.0,
            ),
        }
    ),
)
