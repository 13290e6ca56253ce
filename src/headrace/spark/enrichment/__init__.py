"""Enriching a DataFrame: each row through a task, as a durable job, and the result back as columns."""

from headrace.spark.enrichment.enrich import enrich
from headrace.spark.enrichment.waiting import Progress

__all__ = ["Progress", "enrich"]
