"""The checker: given what clients saw, the event log and the final rows, which promises were broken.

    history = await collect(manager, client=read_client_logs(folder))
    for violation in check(history):
        print(violation)

It knows nothing of how the history came about: a storm of killed processes, a simulator, or a test that
made it up. Each invariant is one function that looks at the history and yields what contradicts it.
"""

from headrace.testing.checker.client_log import ClientLog, read_client_logs
from headrace.testing.checker.collecting import collect
from headrace.testing.checker.histories import (
    Breach,
    Client,
    History,
    Reading,
    Run,
    Said,
    Submission,
)
from headrace.testing.checker.invariants import INVARIANTS, Invariant, Violation, check
from headrace.testing.checker.signatures import signature, signed

__all__ = [
    "INVARIANTS",
    "Breach",
    "Client",
    "ClientLog",
    "History",
    "Invariant",
    "Reading",
    "Run",
    "Said",
    "Submission",
    "Violation",
    "check",
    "collect",
    "read_client_logs",
    "signature",
    "signed",
]
