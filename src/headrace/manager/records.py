"""Changing what is shared: read, decide, write if it is still as it was read, and else once more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from headrace.errors import Contention
from headrace.stores.base import JobStore, Record

T = TypeVar("T")

CONFLICTS_MAX = 100
"""Each conflict means that somebody else made progress, so this many in a row is a defect or a storm."""


class Again(Exception):
    """Raised by one try: somebody else was quicker, so look again."""


async def retried(once: Callable[[], Awaitable[T]], contention: str) -> T:
    """What a try gives that was not overtaken. Raises Contention, with these words, if none was."""
    for _ in range(CONFLICTS_MAX):
        try:
            return await once()
        except Again:
            continue
    raise Contention(contention)


async def find_record(store: JobStore, kind: str, name: str) -> Record:
    """As stored, or one of version 0."""
    found = await store.records(kind, [name])
    return found[0] if found else Record(kind=kind, name=name)


async def change_record(
    store: JobStore,
    kind: str,
    name: str,
    decide: Callable[[Record], tuple[Record | None, T]],
    *,
    what: str,
) -> T:
    """Put what `decide` makes of the record, or delete it (None), and give its answer.

    The record is given as stored, or with version 0. Given back as it is, it is left alone. `decide` may
    be called several times: it must change nothing by itself. `what` names the record in the error.
    """

    async def once() -> T:
        record = await find_record(store, kind, name)
        wanted, answer = decide(record)
        if wanted is record:
            return answer
        if wanted is not None:
            written = await store.put_record(wanted)
        else:
            written = not record.version or await store.delete_record(record)
        if not written:
            raise Again
        return answer

    return await retried(once, f"{what} kept changing; it was left as it is, try again")
