"""The suite of the job store architecture."""

from __future__ import annotations

from headrace.testing.conformance.kit import Suite

suite = Suite("job_store", "Job Store Architecture Design")
