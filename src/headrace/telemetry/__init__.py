"""Traces and metrics of an application: optional, each with an extra of its own."""
