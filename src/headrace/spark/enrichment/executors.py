"""What the Spark tasks of an enrichment do: write rows as JSON, submit them, read jobs back."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from headrace import validation
from headrace.connect import connect
from headrace.crypto import KeyRing
from headrace.errors import (
    HeadraceError,
    InvalidBatch,
    InvalidInput,
    InvalidKeyRing,
    PayloadTooLarge,
    QueueFull,
)
from headrace.manager import JobManager
from headrace.model import Job, State
from headrace.policy import Policies
from headrace.retry import doubling
from headrace.spark.enrichment.request import Request
from headrace.spark.sink.opening import patiently, repeatable
from headrace.spark.sink.payloads import payload_texts
from headrace.spec import JobSpec

Batches = Iterator[pa.RecordBatch]
_Row = tuple[str, str, int | None]
"""Its id, its text, and the seq of its last try if it was tried before."""
Stage = Callable[[Batches], Batches]
"""For mapInArrow."""

ID_CHARS = 32
ROW_CHARS_MAX = 200
"""So much of a row is told in an error."""
PIECE_JOBS = 1000
PAGE_JOBS = 2000
PAGE_BYTES = 8_000_000
"""About what a page of jobs may hold; a job may hold megabytes."""
_FIRST_PAGE_JOBS = 16
FULL_SECONDS = 600.0
"""How long a submission waits for room on a queue that is full."""

TEXTS_SCHEMA = "id string, text string, problem string"
SUBMITTED_SCHEMA = "created long, repeated long, code string, problem string"
OUTCOMES = pa.schema(
    [
        ("id", pa.string()),
        ("row", pa.string()),
        ("text", pa.string()),
        ("seq", pa.int64()),
        ("state", pa.string()),
        ("result", pa.string()),
        ("error", pa.string()),
        ("attempts", pa.int32()),
        ("seconds", pa.float64()),
    ]
)
OUTCOMES_SCHEMA = (
    "id string, row string, text string, seq long, state string, result string, error string, "
    "attempts int, seconds double"
)


def texts() -> Stage:
    """(id, row) to (id, the row as the JSON that a job stores, what is wrong with it)."""

    def write(batches: Batches) -> Batches:
        for batch in batches:
            written, problems = payload_texts(batch.column("row"))
            told = [
                f"{str(batch.column('row')[number].as_py())[:ROW_CHARS_MAX]}: {problems[number]}"
                if number in problems
                else None
                for number in range(len(batch))
            ]
            columns = [batch.column("id"), written, pa.array(told, pa.string())]
            yield pa.RecordBatch.from_arrays(columns, names=["id", "text", "problem"])

    return write


def submitted(request: Request) -> Stage:
    """(id, text, after) to counts. Jobs that are stored already are found by their ids.

    What is wrong with a row, or with the queue, is told in words: Spark would bury an error, and try again.
    """

    def submit(batches: Batches) -> Batches:
        counts, code, problem = (0, 0), None, None
        try:
            counts = asyncio.run(_submit(request, _specs(request, batches)))
        except (InvalidInput, QueueFull) as error:
            code, problem = error.code, error.message
        yield pa.RecordBatch.from_pydict(
            {"created": [counts[0]], "repeated": [counts[1]], "code": [code], "problem": [problem]},
            pa.schema(
                [
                    ("created", pa.int64()),
                    ("repeated", pa.int64()),
                    ("code", pa.string()),
                    ("problem", pa.string()),
                ]
            ),
        )

    return submit


def outcomes(request: Request) -> Stage:
    """(after, upto), ranges of seq, to what became of each row of the jobs in them."""

    def read(batches: Batches) -> Batches:
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("after", "upto"))
            for after, upto in zip(*columns, strict=True):
                yield from _in_thread_of_its_own(_pages(request, after, upto))

    return read


async def open_manager(request: Request) -> JobManager:
    """With the rules of the application; a job that is submitted again under its id is found."""
    ring = KeyRing.from_environment() if request.primary_key is not None else None
    if (None if ring is None else ring.primary) != request.primary_key:
        raise InvalidKeyRing(
            f"contents are encrypted with key {request.primary_key}, which is not the primary key here; "
            "nothing was stored: give every executor the ring in HEADRACE_KEYS "
            "(spark.executorEnv.HEADRACE_KEYS)"
        )
    policies = repeatable(request.policies or Policies())
    return await connect(request.url, policies=policies, tenant=request.tenant, keys=ring)


# --- submitting ----------------------------------------------------------------------------------


def _specs(request: Request, batches: Batches) -> Iterator[JobSpec]:
    if request.rows_argument is None:
        for row in _rows(batches):
            yield _single(request, *row)
        return
    group: list[_Row] = []
    for row in _rows(batches):
        group.append(row)
        if len(group) == request.batch_size:
            yield _grouped(request, group)
            group = []
    if group:
        yield _grouped(request, group)


def _rows(batches: Batches) -> Iterator[_Row]:
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("id", "text", "after"))
        yield from zip(*columns, strict=True)


def _single(request: Request, row_id: str, text: str, after: int | None) -> JobSpec:
    limit_key = None
    if request.limit_by is not None:
        value = msgspec.json.decode(text).get(request.limit_by)
        limit_key = None if value is None else str(value)
    return replace(
        request.template,
        id=f"{request.row_prefix}{row_id}" + ("" if after is None else f"-{after}"),
        payload=msgspec.Raw(text.encode()),
        tags=_tags(request),
        limit_key=limit_key,
    )


def _grouped(request: Request, group: Sequence[_Row]) -> JobSpec:
    """Known by all its rows, and by the last try of each."""
    known_by = sha256("\n".join(f"{one} {after or 0}" for one, _, after in group).encode())
    name = msgspec.json.encode(request.rows_argument).decode()
    text = f"{{{name}:[{','.join(text for _, text, _ in group)}]}}"
    return replace(
        request.template,
        id=f"{request.group_prefix}{known_by.hexdigest()[:ID_CHARS]}",
        payload=msgspec.Raw(text.encode()),
        tags=_tags(request),
    )


def _tags(request: Request) -> tuple[str, ...]:
    return validation.check_tags([*validation.check_tags(request.template.tags), request.tag])


async def _submit(request: Request, specs: Iterator[JobSpec]) -> tuple[int, int]:
    created = total = 0
    async with await patiently(lambda: open_manager(request)) as manager:
        while piece := list(islice(specs, PIECE_JOBS)):
            created += await _store(manager, piece)
            total += len(piece)
    return created, total - created


async def _store(manager: JobManager, piece: Sequence[JobSpec]) -> int:
    """How many are new. Waits while the queue is full; what is too much for it at once goes by halves."""
    end = time.monotonic() + FULL_SECONDS
    pauses = doubling(0.1, 5.0)
    while True:
        try:
            return sum((await patiently(lambda: manager.submit_many(piece))).created)
        except QueueFull:
            if len(piece) > 1:
                half = len(piece) // 2
                return await _store(manager, piece[:half]) + await _store(manager, piece[half:])
            if time.monotonic() > end:
                raise
        except InvalidBatch as error:
            raise _unfit(piece[error.index], error.cause) from error
        except InvalidInput as error:
            raise (_unfit(piece[0], error) if len(piece) == 1 else error) from error
        await asyncio.sleep(next(pauses) * random.uniform(0.5, 1.0))  # noqa: S311 - jitter


def _unfit(spec: JobSpec, cause: HeadraceError) -> InvalidInput:
    """The row, or the group, by its contents: nobody knows it by its place in a piece."""
    assert isinstance(spec.payload, msgspec.Raw)
    row = bytes(spec.payload).decode()[:ROW_CHARS_MAX]
    smaller = "; a smaller batch_size may help" if isinstance(cause, PayloadTooLarge) else ""
    return InvalidInput(f"{row}: {cause.message}{smaller}")


# --- reading back --------------------------------------------------------------------------------


async def _pages(request: Request, after: int, upto: int) -> AsyncIterator[pa.RecordBatch]:
    async with await patiently(lambda: open_manager(request)) as manager:
        limit, cursor = _FIRST_PAGE_JOBS, f"a{after}"
        while True:
            page = await patiently(
                partial(manager.find, tags=[request.tag], limit=limit, cursor=cursor)
            )
            jobs = [job for job in page.jobs if job.seq <= upto]
            origins = await _origins(manager, request, jobs)
            rows = [row for job in jobs for row in _outcome(request, job, origins[job.id])]
            batch = pa.RecordBatch.from_pylist(rows, OUTCOMES)
            yield batch
            if page.cursor is None or page.jobs[-1].seq >= upto:
                return
            cursor = page.cursor
            each = max(batch.nbytes // max(len(jobs), 1), 1)
            limit = min(max(PAGE_BYTES // each, 1), 4 * limit, PAGE_JOBS)


async def _origins(
    manager: JobManager, request: Request, jobs: Sequence[Job]
) -> dict[str, str | None]:
    """The id that the enrichment gave: a job's own or, if it was redriven, that of the first of its line.

    None: the line is broken, or leads elsewhere.
    """
    found: dict[str, str | None] = {job.id: job.id for job in jobs}
    prefix = request.row_prefix
    while followed := {
        own: now for own, now in found.items() if now is not None and not now.startswith(prefix)
    }:
        before = {job.id: job.previous_id for job in jobs}
        if unknown := [one for one in followed.values() if one not in before]:
            line = await patiently(partial(manager.look_up, unknown))
            before |= {one: line[one].previous_id if one in line else None for one in unknown}
        found |= {own: before[now] for own, now in followed.items()}
    return found


def _in_thread_of_its_own(pages: AsyncIterator[pa.RecordBatch]) -> Batches:
    """The pages one by one, on an event loop that stands still in between."""
    with asyncio.Runner() as runner:
        while (page := runner.run(_next(pages))) is not None:
            yield page


async def _next(pages: AsyncIterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return await anext(pages, None)


def _outcome(request: Request, job: Job, origin: str | None) -> Iterator[dict[str, Any]]:
    """One per row of the job; `origin` is the id that the enrichment gave."""
    if job.is_sealed:
        raise InvalidKeyRing(
            f"job {job.id} is encrypted, and this executor cannot read it: give every executor the ring in "
            "HEADRACE_KEYS (spark.executorEnv.HEADRACE_KEYS)"
        )
    same = {
        "seq": job.seq,
        "state": job.state.value,
        "error": _error(job),
        "attempts": job.attempt,
        "seconds": _seconds(job),
    }
    if request.rows_argument is None:
        if origin is None:
            return
        row_id = origin.removeprefix(request.row_prefix)[:ID_CHARS]
        result = _not_null(job.result_json)
        yield {**same, "id": row_id, "text": job.payload_json.decode(), "result": result}
        return
    rows = msgspec.json.decode(job.payload_json, type=dict[str, list[msgspec.Raw]])
    (group,) = rows.values()  # whatever the argument was called then
    texts = [bytes(one).decode() for one in group]
    results, error = _split(job, len(texts))
    if error is not None:
        same |= {"error": error, "state": State.FAILED.value}  # so that it can be tried again
    for text, result in zip(texts, results, strict=True):
        yield {**same, "row": text, "text": text, "result": result}


def _split(job: Job, rows: int) -> tuple[Sequence[str | None], str | None]:
    """The results of a group, row by row, or why there are none."""
    none = [None] * rows
    if job.state is not State.COMPLETED:
        return none, None
    try:
        results = msgspec.json.decode(job.result_json or b"null", type=list[msgspec.Raw])
    except msgspec.DecodeError:
        return none, "the task did not return a list, one result per row"
    if len(results) != rows:
        return none, f"the task returned {len(results)} results for {rows} rows"
    return [_not_null(bytes(one)) for one in results], None


def _error(job: Job) -> str | None:
    if job.state is State.COMPLETED:
        return None
    return f"the job is {job.state}" if job.failure is None else job.failure.message


def _not_null(encoded: bytes | None) -> str | None:
    return None if encoded is None or encoded == b"null" else encoded.decode()


def _seconds(job: Job) -> float | None:
    if job.assigned_at is None or job.finalized_at is None:
        return None
    return (job.finalized_at - job.assigned_at).total_seconds()
