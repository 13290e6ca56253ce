"""Where Spark looks for a format it does not know: `format("headrace")` needs no registering."""

from headrace.spark.datasource import HeadraceDataSource as DefaultSource

__all__ = ["DefaultSource"]
