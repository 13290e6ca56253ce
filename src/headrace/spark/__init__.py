"""Headrace on Spark: stores as tables, DataFrames as jobs, the lake, and fleets of workers.

Needs the extra: pip install 'headrace[spark]'.
"""

from headrace.spark.datasource import FORMAT, HeadraceDataSource, register
from headrace.spark.enrichment import enrich
from headrace.spark.session import session

__all__ = ["FORMAT", "HeadraceDataSource", "enrich", "register", "session"]
