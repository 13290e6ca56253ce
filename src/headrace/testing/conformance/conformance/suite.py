"""The suite of the conformance specification."""

from __future__ import annotations

from headrace.testing.conformance.kit import Suite

suite = Suite("conformance", "dog-queue Backend Conformance Test Specification")
