"""A sink whose tasks die, the first time, between storing their rows and telling of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.spark import HeadraceDataSource
from headrace.spark.sink.options import SinkOptions
from headrace.spark.sink.writer import Writer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from headrace.spark.sink.message import TaskDone


class DyingWriter(Writer):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        done = super().write(iterator)
        assert self.options.rejects is not None  # its folder serves for the marks, too
        mark = Path(self.options.rejects).with_name(f"died-{done.partition}")
        if not mark.exists():
            mark.write_text(str(done.created))
            os._exit(1)
        return done


class DyingSource(HeadraceDataSource):
    @classmethod
    def name(cls) -> str:
        return "dying"

    def writer(self, schema: StructType, overwrite: bool) -> Writer:
        return DyingWriter(SinkOptions.parse(self.options), schema, overwrite=overwrite)
