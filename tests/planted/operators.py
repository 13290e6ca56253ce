"""Defects of what operators do: going through jobs, and redriving, cancelling, deleting many."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from msgspec.structs import replace

from headrace.manager import bulk, explanation, matching, precedence, queries, retention
from headrace.manager.context import Context
from headrace.manager.matching import Criteria, Matching
from headrace.model import Job, State
from headrace.stores.base import ClaimRequest, Query, WorkerSeen
from tests.planted.contracts import Planted
from tests.planted.defect import patched


async def first_page_only(self: queries.Found) -> AsyncIterator[Job]:
    for job in await self._read(self._cursor, queries.STEP_JOBS):
        yield job


async def no_heirs(context: Context, jobs: Sequence[Job]) -> dict[str, Job]:
    return {}


async def heirs_that_live(context: Context, jobs: Sequence[Job]) -> dict[str, Job]:
    found = await right_heirs(context, jobs)
    return {job_id: job for job_id, job in found.items() if not job.is_terminal}


right_heirs = retention.heirs


async def one_step_only(context: Context, criteria: Criteria) -> AsyncIterator[list[Job]]:
    async for jobs in right_steps(context, criteria):
        yield jobs
        return


async def without_tenant(context: Context, criteria: Criteria) -> AsyncIterator[list[Job]]:
    query = replace(criteria.query, limit=1000)
    yield [job for job in await context.store.find(query) if criteria.takes(job)]


right_steps = bulk.steps


def everything_for_nothing(where: Any, possible: frozenset[State], doing: str) -> Criteria:
    if where == Matching():
        query = Query(states=tuple(possible))
        return Criteria(
            query=query, codes=None, error=None, error_group=None, since=None, before=None
        )
    return right_check(where, possible, doing)


right_check = matching.check
right_takes = Criteria.takes


def of(part: str, where: object, name: str, wrong: object) -> Planted:
    return Planted("manager", part, patched(where, name, wrong))


async def nothing_ahead(
    context: Context, job: Job, takers: Sequence[WorkerSeen]
) -> tuple[Any, ...]:
    return ()


def asks_for_every_tenant(context: Context, worker: WorkerSeen) -> ClaimRequest:
    return replace(right_request(context, worker), tenant=None)


right_request = precedence._request


def whatever_it_is_now(self: matching.Criteria, job: Job) -> bool:
    return True


DEFECTS: dict[str, Planted] = {
    "a find ends with its first page": of("find", queries.Found, "__aiter__", first_page_only),
    "what was redriven is redriven again": of("redrive", retention, "heirs", no_heirs),
    "what was redriven and has ended is redriven again": of(
        "redrive", retention, "heirs", heirs_that_live
    ),
    "a bulk command ends with its first step": of("redrive", bulk, "steps", one_step_only),
    "a bulk command reaches other tenants": of("delete", bulk, "steps", without_tenant),
    "a bulk command takes what nobody means any more": of(
        "matching", matching.Criteria, "means", whatever_it_is_now
    ),
    "no filter means every job": of("matching", bulk, "check", everything_for_nothing),
    "explain looks at the job's own queue only": of(
        "explain", explanation, "find_ahead", nothing_ahead
    ),
    "explain tells of other tenants' queues": of(
        "explain", precedence, "_request", asks_for_every_tenant
    ),
    "the code of an error is not compared": of(
        "matching", Criteria, "takes", lambda self, job: right_takes(replace(self, codes=None), job)
    ),
    "the time of a job is not compared": of(
        "matching", Criteria, "takes", lambda self, job: right_takes(replace(self, since=None), job)
    ),
}
