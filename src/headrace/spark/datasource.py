"""`format("headrace")`: what Spark calls to read a store's tables and to submit rows as jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT = "headrace"


class HeadraceDataSource(DataSource):
    """Reads `table` = jobs, events or attempts of the store at `url`; writing submits jobs.

    The parts are imported when they are asked for: a write needs nothing of the readers.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        from headrace.spark.schemas import TABLES, spark_schema
        from headrace.spark.source.options import SourceOptions

        return spark_schema(TABLES[SourceOptions.parse(self.options).table])

    def reader(self, schema: StructType) -> DataSourceReader:
        from headrace.spark.source.batch import Reader
        from headrace.spark.source.options import SourceOptions

        return Reader(SourceOptions.parse(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        from headrace.spark.source.options import SourceOptions
        from headrace.spark.source.stream import StreamReader

        return StreamReader(SourceOptions.parse(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's signature
        from headrace.spark.sink.options import SinkOptions
        from headrace.spark.sink.writer import Writer

        return Writer(SinkOptions.parse(self.options), schema, overwrite=overwrite)

    def streamWriter(  # noqa: N802 - Spark's name
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001 - Spark's signature
    ) -> DataSourceStreamWriter:
        from headrace.spark.sink.options import SinkOptions
        from headrace.spark.sink.writer import StreamWriter

        return StreamWriter(SinkOptions.parse(self.options), schema, overwrite=overwrite)


def register(spark: SparkSession) -> None:
    """Make `format("headrace")` known to a session that does not look for it by itself."""
    spark.dataSource.register(HeadraceDataSource)
