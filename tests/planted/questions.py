"""Questions that are answered wrongly, and acts on many that are counted, or done, wrongly."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from headrace.manager import audit, bulk, bulk_acts, refusals, rollups, trimming
from headrace.manager.context import Context
from headrace.manager.readers import Reader
from headrace.manager.records import change_record
from headrace.manager.search import Wanted
from headrace.model import Job
from headrace.rollups import Span, name_of
from headrace.stores.base import Record
from tests.planted.contracts import Planted
from tests.planted.defect import patched


async def added_again(context: Context, kind: str, start: int, span: Span, step: int) -> None:
    def decide(record: Record) -> tuple[Record, None]:
        known = rollups._span(record) if record.version else Span()
        known.merge(span)
        return replace(record, body_json=msgspec.json.encode(known)), None

    await change_record(context.store, kind, name_of(start), decide, what=kind)


async def only_registered(context: Context, without_readers: bool) -> tuple[Reader, ...]:
    return await trimming._all(context, without_readers)


async def nothing_was_done(self: Any, ids: Sequence[str]) -> set[str]:
    return set()


def at_once(context: Context, state: Any, jobs: int) -> datetime | None:
    return None


def whoever_asks(self: Context, tenant: str | None) -> Context:
    return self


@contextlib.asynccontextmanager
async def unnoted(context: Context, act: str, target: str, **said: Any) -> AsyncIterator[None]:
    yield


right_takes = Wanted.takes


def whatever_it_holds(self: Wanted, job: Job) -> bool:
    return right_takes(replace(self, text=None), job)


def of(part: str, where: object, name: str, wrong: object) -> Planted:
    return Planted("manager", part, patched(where, name, wrong))


DEFECTS: dict[str, Planted] = {
    "a step is added to a minute again": of("history", rollups, "_add", added_again),
    "the log is trimmed before it is counted": of(
        "history", trimming, "_all_holding", only_registered
    ),
    "what a chunk has done is not seen": of(
        "bulk acts", bulk.Redrive, "done_before", nothing_was_done
    ),
    "a bulk act keeps no rate": of("bulk acts", bulk_acts, "_next_at", at_once),
    "a tenant's bulk act is about all tenants": of("bulk acts", Context, "of_tenant", whoever_asks),
    "an act leaves no row": of("audit", audit, "noted", unnoted),
    "refused writes are noted without end": of("refused writes", refusals, "PER_JOB_MAX", 10**9),
    "the text of a search is not compared": of("search", Wanted, "takes", whatever_it_holds),
}
