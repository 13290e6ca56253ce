"""Work for Spark's executors: a function over some items, whose answers are small.

No row passes the driver. A task reads and writes files itself, and hands back their names, statistics and
counts.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSWER = "place long, answer binary"
"""The columns of all that comes back from tasks to the driver."""
_SCHEMA = pa.schema([("place", pa.int64()), ("answer", pa.binary())])

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


class _Refused(NamedTuple):
    error: HeadraceError


class Tasks(Protocol):
    """Whoever carries functions out. What is raised in one is raised here."""

    parallelism: int
    """How many items are worked on at once."""

    def run(self, function: Callable[[_Item], _Answer], items: Sequence[_Item]) -> list[_Answer]:
        """The function's answers, in the order of the items. Done again, an item must do no harm."""
        ...


class SparkTasks:
    """On the executors of a session, Spark Connect included: one task per item."""

    def __init__(self, spark: SparkSession, parallelism: int) -> None:
        self._spark = spark
        self.parallelism = parallelism

    def run(self, function: Callable[[_Item], _Answer], items: Sequence[_Item]) -> list[_Answer]:
        if not items:
            return []
        places = self._spark.range(0, len(items), 1, len(items))
        rows = places.mapInArrow(_answering(function, items), ANSWER).collect()
        told = {row.place: pickle.loads(row.answer) for row in rows}  # noqa: S301 - from our own tasks
        for answer in told.values():
            if isinstance(answer, _Refused):
                raise answer.error
        return [told[place] for place in range(len(items))]


class LocalTasks:
    """In this process, one after the other. Items and answers travel as they do to executors."""

    parallelism = 2

    def run(self, function: Callable[[_Item], _Answer], items: Sequence[_Item]) -> list[_Answer]:
        answers = []
        for item in items:
            there, what = pickle.loads(pickle.dumps((function, item)))  # noqa: S301 - our own
            answers.append(pickle.loads(pickle.dumps(there(what))))  # noqa: S301 - our own
        return answers


def _answering(
    function: Callable[[_Item], _Answer], items: Sequence[_Item]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                try:
                    told = pickle.dumps(function(items[place]))
                except HeadraceError as error:
                    # Said once and plainly, not three times and in the words of Java.
                    told = pickle.dumps(_Refused(error))
                yield pa.RecordBatch.from_arrays(
                    [pa.array([place]), pa.array([told], pa.binary())], schema=_SCHEMA
                )

    return answer
