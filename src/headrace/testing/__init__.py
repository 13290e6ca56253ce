"""For tests: a harness for applications, and the conformance kit for stores."""

from headrace.testing.harness import Crash, Harness, SyncHarness

__all__ = ["Crash", "Harness", "SyncHarness"]
