"""Which jobs a bulk command is about: ids, tags, or the union of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from headrace import validation
from headrace.errors import EmptySelection
from headrace.manager.context import Context
from headrace.model import Job
from headrace.stores.base import FIND_LIMIT_MAX, Query


class Selection(msgspec.Struct, frozen=True):
    """Named jobs and jobs that have all of some tags. One of the two at least: never "everything"."""

    ids: tuple[str, ...]
    tags: tuple[str, ...]


class Selected(msgspec.Struct, frozen=True):
    jobs: tuple[Job, ...]
    """In order of ids first, then of seq; each once."""
    not_found: tuple[str, ...]


def selection(ids: Iterable[str], tags: Iterable[str] | Mapping[str, object]) -> Selection:
    chosen = Selection(validation.check_ids(ids), validation.check_tags(tags))
    if not chosen.ids and not chosen.tags:
        raise EmptySelection("name ids or tags: neither would mean every job; nothing was changed")
    return chosen


async def select(context: Context, chosen: Selection) -> Selected:
    by_id = await context.read(chosen.ids)
    named = [by_id[job_id] for job_id in chosen.ids if job_id in by_id]
    tagged = await every(context, Query(tags=chosen.tags)) if chosen.tags else ()
    found = {job.id: job for job in (*named, *tagged)}
    missing = tuple(job_id for job_id in chosen.ids if job_id not in by_id)
    return Selected(tuple(found.values()), missing)


async def every(context: Context, query: Query) -> Sequence[Job]:
    """All pages of a query, in the scope of the manager's tenant."""
    found: list[Job] = []
    while True:
        page = await context.store.find(
            msgspec.structs.replace(
                query,
                tenant=context.tenant,
                limit=FIND_LIMIT_MAX,
                after_seq=found[-1].seq if found else None,
            )
        )
        found += page
        if len(page) < FIND_LIMIT_MAX:
            return found
