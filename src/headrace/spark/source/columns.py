"""The columns that a read is to give: all of the table's, or those that `.schema(...)` names."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import StructType

from headrace.errors import InvalidInput
from headrace.spark.schemas import TABLES, spark_schema


def columns_of(table: str, wanted: StructType) -> pa.Schema:
    """In the order asked for. Raises InvalidInput for one that the table does not have, or not so."""
    known = {field.name: field.dataType for field in spark_schema(TABLES[table])}
    for field in wanted:
        if field.name not in known:
            raise InvalidInput(
                f"the table {table} has no column {field.name!r}; nothing was read: it has "
                f"{', '.join(known)}"
            )
        if field.dataType != known[field.name]:
            raise InvalidInput(
                f"the column {field.name} of {table} is {known[field.name].simpleString()}, not "
                f"{field.dataType.simpleString()}; nothing was read: name it so, and cast it afterwards"
            )
    return pa.schema([TABLES[table].field(field.name) for field in wanted])
