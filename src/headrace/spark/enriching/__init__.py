"""Enriching a DataFrame: each row through a task, as a durable job, and the result back as columns."""

from headrace.spark.enriching.enrichment import enrich
from headrace.spark.enriching.waiting import Progress

__all__ = ["Progress", "enrich"]
