"""enrich: a DataFrame in, the same rows with results out; every row one durable job, or part of one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import functions as f
from pyspark.sql import types as t

from headrace import validation
from headrace.app import Task
from headrace.app.bridge import LoopThread
from headrace.errors import InvalidInput, InvalidKeyRing, QueueFull
from headrace.limits import QueueLimits
from headrace.model import TERMINAL, Job, State
from headrace.spark.enrichment import frames
from headrace.spark.enrichment.executors import (
    ROW_CHARS_MAX,
    SUBMITTED_SCHEMA,
    open_manager,
    submitted,
)
from headrace.spark.enrichment.failures import EnrichmentFailed
from headrace.spark.enrichment.request import Request, make_request
from headrace.spark.enrichment.waiting import Bar, Found, OnProgress, found_jobs, wait
from headrace.spark.enrichment.workers import (
    WorkerHandle,
    fleet_handle,
    local_settings,
    local_worker,
    planned_fleet,
    running,
)
from headrace.spark.fleet import Fleet
from headrace.spark.sink.opening import patiently
from headrace.worker import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POLL_SECONDS = 1.0
EXAMPLES_MAX = 3
_loop = LoopThread()
_FAILED = [state.value for state in TERMINAL if state is not State.COMPLETED]


def enrich(
    df: DataFrame,
    task: Task[..., Any] | str,
    *,
    key: str | Sequence[str],
    name: str | None = None,
    url: str | None = None,
    columns: Sequence[str] | None = None,
    batch_size: int = 1,
    schema: str | t.DataType | None = None,
    queue: str | None = None,
    limits: QueueLimits | None = None,
    workers: int | Settings | None = None,
    fleet: Fleet | str | None = None,
    retry_failed: bool = False,
    on_error: Literal["keep", "raise"] = "keep",
    timeout: float | None = None,
    progress: OnProgress | None = None,
    poll_seconds: float = POLL_SECONDS,
) -> DataFrame:
    """Each row of `df` through `task`: the same rows with `result`, `error`, `attempts` and `seconds`.

    A row is known by its `key` within the enrichment's `name` (default: the task's). Rows with one key
    are one job, and each gets its result. Called again, after a crash or with more rows, it runs only
    what has no job yet (and, with `retry_failed`, what has failed): finished rows are not run twice, for
    as long as the store keeps their jobs.

    The task gets the `columns` of its row as arguments (default: those it takes). With a `batch_size` it
    gets a list of up to so many rows as its one argument, and returns a list of as many results.

    Any workers run the jobs, under the limits of their queue; `limits` sets these. `workers` runs them in
    this process, too (so many at once), `fleet` in tasks of the DataFrame's own session.

    `result` is JSON text or, with a `schema`, of that type. `error` says why there is none; with
    `on_error="raise"` the first such row raises EnrichmentFailed instead. After `timeout` seconds raises
    TimeoutError, and the jobs go on. The results are read from the store whenever the DataFrame is used.
    """
    if on_error not in ("keep", "raise"):
        raise InvalidInput(f"on_error is {on_error!r}; it is keep or raise; {validation.UNCHANGED}")
    if workers is not None and fleet is not None:
        raise InvalidInput(f"give workers or a fleet, not both; {validation.UNCHANGED}")
    request = make_request(
        df,
        task,
        key=key,
        name=name,
        url=url,
        columns=columns,
        batch_size=batch_size,
        queue=queue,
    )
    settings = local_settings(task, request, workers, url)
    planned = planned_fleet(request, fleet)
    result_type = _type(schema)
    with_ids = frames.keyed(df, request)
    key_types = t.StructType([df.schema[one] for one in request.keys])
    enrichment = _Enrichment(df.sparkSession, request, key_types)
    rows = frames.distinct_rows(with_ids, request).persist()
    try:
        enrichment.check(rows)
        enrichment.check_name()
        with contextlib.ExitStack() as handles:
            with enrichment.looked_up(rows, retry_failed=retry_failed) as wanted:
                enrichment.set_limits(limits)
                local = handles.enter_context(running(local_worker(task, settings)))
                enrichment.submit(wanted)
            fleet_worker = handles.enter_context(running(fleet_handle(enrichment.spark, planned)))
            enrichment.wait(
                timeout=timeout,
                poll_seconds=poll_seconds,
                progress=progress,
                handles=(local, fleet_worker),
            )
        if on_error == "raise":
            enrichment.refuse_failures(rows)
    finally:
        rows.unpersist()
    return frames.joined(with_ids, enrichment.stored(), request, result_type)


class _Enrichment:
    """One call of enrich on its driver."""

    def __init__(self, spark: SparkSession, request: Request, key_types: t.StructType) -> None:
        self.spark = spark
        self._request = request
        self._key_types = key_types

    def check(self, rows: DataFrame) -> None:
        """Raise for keys that are null, or stand for rows that are not alike."""
        found = rows.agg(
            f.sum(f.when(f.col("id").isNull(), f.col("rows"))).alias("null"),
            f.count_if(f.col("differs")).alias("differ"),
            f.max("problem").alias("problem"),
        ).first()
        assert found is not None
        if found["problem"]:
            raise InvalidInput(f"a row cannot be a job: {found['problem']}; {validation.UNCHANGED}")
        keys = ", ".join(self._request.keys)
        if found["null"]:
            raise InvalidInput(
                f"{found['null']} rows have no key ({keys}): each row must have one; {validation.UNCHANGED}"
            )
        if found["differ"]:
            example = rows.where("differs").select("text").first()
            assert example is not None
            raise InvalidInput(
                f"{found['differ']} keys ({keys}) stand for rows that differ in what the task gets, such as "
                f"{example['text'][:ROW_CHARS_MAX]}; {validation.UNCHANGED}: add a column to the key, or "
                "take one out of columns"
            )

    def check_name(self) -> None:
        """Reach the store from here first, and see whose the name is."""

        async def check() -> None:
            async with await open_manager(self._request) as manager:
                found = await found_jobs(manager, self._request)
                if found.first is not None:
                    self._check_alike(found.first)

        _loop.run(check())

    def _check_alike(self, stored: Job) -> None:
        """Results of another task, or of rows where groups are meant, would pass for those asked for."""
        request = self._request
        if stored.type not in request.types:
            raise InvalidInput(
                f"enrichment {request.name} ran task {stored.type} before, not {request.template.type}; "
                f"{validation.UNCHANGED}: give this one another name"
            )
        if not stored.id.startswith(request.row_prefix):
            return  # it was redriven, and does not say
        is_group = stored.id.startswith(request.group_prefix)
        if is_group != (request.rows_argument is not None):
            ran = "groups of rows" if is_group else "single rows"
            raise InvalidInput(
                f"enrichment {request.name} ran {ran} before, and batch_size={request.batch_size} asks for "
                f"the other; {validation.UNCHANGED}: give this one another name"
            )

    @contextlib.contextmanager
    def looked_up(self, rows: DataFrame, *, retry_failed: bool) -> Iterator[DataFrame | None]:
        """(id, text, after): the rows that have no job yet; None if all have one. Raises for changed ones.

        In order of id, so that a repeated task makes the same groups.
        """
        seen = self._seen(rows, retry_failed=retry_failed).sortWithinPartitions("id").persist()
        try:
            found = seen.agg(
                f.count_if(f.col("wanted")).alias("wanted"), f.max("changed").alias("changed")
            ).first()
            assert found is not None
            if found["changed"] is not None:
                # A result must not pass for that of a row that has changed since.
                text, before = (one[:ROW_CHARS_MAX] for one in found["changed"])
                raise InvalidInput(
                    f"enrichment {self._request.name} has run a row with the key of {text} as {before}; "
                    f"{validation.UNCHANGED}: give this one another name, or retry_failed=True if only rows "
                    "that failed have changed"
                )
            yield seen.where("wanted").select("id", "text", "after") if found["wanted"] else None
        finally:
            seen.unpersist()

    def set_limits(self, limits: QueueLimits | None) -> None:
        """Give the queue its limits: only once nothing is refused any more."""

        async def set_them(wanted: QueueLimits) -> None:
            async with await patiently(lambda: open_manager(self._request)) as manager:
                await manager.set_limits(self._request.template.queue, wanted)

        if limits is not None:
            _loop.run(set_them(limits))

    def _seen(self, rows: DataFrame, *, retry_failed: bool) -> DataFrame:
        """(id, text, after, wanted, changed): each row with what the store knows of it."""
        found = self._found()
        if not found.jobs:
            nothing = f.lit(None).cast("struct<text: string, before: string>")
            return rows.select(
                "id",
                "text",
                f.lit(None).cast("long").alias("after"),
                f.lit(True).alias("wanted"),  # noqa: FBT003 - a value
                nothing.alias("changed"),
            )
        known = self._stored(found).select("id", f.col("text").alias("before"), "state", "last")
        is_wanted = f.col("state").isNull()
        if retry_failed:
            is_wanted |= f.col("state").isin(_FAILED)
        is_other = ~is_wanted & (f.col("before") != f.col("text"))
        return rows.join(known, "id", "left").select(
            "id",
            "text",
            f.col("last").alias("after"),
            is_wanted.alias("wanted"),
            f.when(is_other, f.struct("text", "before")).alias("changed"),
        )

    def submit(self, wanted: DataFrame | None) -> None:
        """Store what was looked up."""
        if wanted is None:
            return
        told = wanted.mapInArrow(submitted(self._request), SUBMITTED_SCHEMA).collect()
        for one in told:
            match one["code"]:
                case None:
                    continue
                case QueueFull.code:
                    queue = self._request.template.queue
                    raise QueueFull(
                        f"{one['problem']}. Other rows may be submitted: call enrich again to go on",
                        queue=queue,
                        tenant=self._request.tenant,
                    )
                case InvalidKeyRing.code:
                    raise InvalidKeyRing(one["problem"])
                case _:
                    raise InvalidInput(
                        f"a row cannot be a job: {one['problem']}; other rows are submitted: mend this one "
                        "and call enrich again"
                    )

    def wait(
        self,
        *,
        timeout: float | None,
        poll_seconds: float,
        progress: OnProgress | None,
        handles: Sequence[WorkerHandle | None],
    ) -> None:
        is_over = False

        def check() -> None:
            if is_over:
                raise RuntimeError("nobody waits any more")
            for handle in handles:
                if handle is not None:
                    handle.check()

        async def waited(show: OnProgress) -> None:
            async with await patiently(lambda: open_manager(self._request)) as manager:
                await wait(
                    manager,
                    self._request,
                    timeout=timeout,
                    poll_seconds=poll_seconds,
                    on_progress=show,
                    check=check,
                )

        try:
            if progress is not None:
                _loop.run(waited(progress))
                return
            with Bar(f"enriching {self._request.name}") as bar:
                _loop.run(waited(bar.show))
        finally:
            is_over = True  # Ctrl-C ends the wait here, not on the loop

    def stored(self) -> DataFrame:
        """What the store holds by now."""
        return self._stored(self._found())

    def _stored(self, found: Found) -> DataFrame:
        return frames.stored_rows(self.spark, self._request, found, self._key_types)

    def _found(self) -> Found:
        async def find() -> Found:
            async with await patiently(lambda: open_manager(self._request)) as manager:
                return await patiently(lambda: found_jobs(manager, self._request))

        return _loop.run(find())

    def refuse_failures(self, rows: DataFrame) -> None:
        failed = (
            rows.select("id", "rows")
            .join(self.stored(), "id")
            .where(f.col("error").isNotNull())
            .persist()
        )
        try:
            total = failed.agg(f.sum("rows").alias("rows")).first()
            if total is not None and total["rows"]:
                examples = failed.select("text", "error").take(EXAMPLES_MAX)
                raise EnrichmentFailed(
                    self._request.name,
                    total["rows"],
                    [(one["text"], one["error"]) for one in examples],
                )
        finally:
            failed.unpersist()


def _type(schema: str | t.DataType | None) -> t.DataType | None:
    return t.DataType.fromDDL(schema) if isinstance(schema, str) else schema
