"""Looking for jobs by anything that is known of them: rows without contents, and how far was looked.

What the store has an index for narrows the search there; the rest is compared here, job by job, so each
answer looks at so many jobs at most, says where it ended, and how to go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from headrace.envelope import is_sealed
from headrace.manager.context import Context
from headrace.manager.matching import fingerprint_of
from headrace.manager.queries import cursor_at, seq_of
from headrace.model import Category, Job, State
from headrace.redaction import Redacted
from headrace.stores.base import Query

ROWS = 50
LOOK_JOBS = 10_000
"""So many jobs does one answer look at, unless it is told otherwise."""
LOOK_JOBS_MAX = 1_000_000
_PAGE_JOBS = 500


class Wanted(Redacted, frozen=True, kw_only=True):
    """What is compared job by job. None does not filter; of two bounds the first is inside."""

    ended_from: datetime | None = None
    ended_before: datetime | None = None
    due_from: datetime | None = None
    due_before: datetime | None = None
    priorities: tuple[int, ...] | None = None
    categories: tuple[Category, ...] | None = None
    codes: tuple[str, ...] | None = None
    error_group: str | None = None
    key: str | None = None
    correlation_id: str | None = None
    id_prefix: str | None = None
    text: str | None = None
    """In the payload's JSON, in whatever case."""

    def takes(self, job: Job) -> bool:
        failure = job.failure
        return (
            _within(job.finalized_at, self.ended_from, self.ended_before)
            and _within(job.run_at, self.due_from, self.due_before)
            and (self.priorities is None or job.priority in self.priorities)
            and (
                self.categories is None
                or (failure is not None and failure.category in self.categories)
            )
            and (self.codes is None or (failure is not None and failure.code in self.codes))
            and (self.error_group is None or fingerprint_of(job) == self.error_group)
            and self.key in (None, job.key)
            and self.correlation_id in (None, job.correlation_id)
            and (self.id_prefix is None or job.id.startswith(self.id_prefix))
            and (self.text is None or self.text in _text(job))
        )


class JobRow(Redacted, frozen=True, kw_only=True):
    """A job without what it holds."""

    id: str
    tenant: str
    queue: str
    type: str
    state: State
    priority: int
    tags: tuple[str, ...]
    attempt: int
    max_attempts: int | None
    failures: int
    losses: int
    assignee: str | None
    progress: float | None
    created_at: datetime
    run_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finalized_at: datetime | None
    lease_until: datetime | None
    key: str | None
    limit_key: str | None
    previous_id: str | None
    parent_id: str | None
    correlation_id: str | None
    category: Category | None
    """Of its last error."""
    code: str | None
    error_group: str | None
    """The fingerprint of the group of its last error."""
    payload_bytes: int
    result_bytes: int
    checkpoint_bytes: int


class SearchPage(Redacted, frozen=True, kw_only=True):
    """Jobs that match, in order of submission, as far as was looked."""

    rows: tuple[JobRow, ...]
    cursor: str | None
    """Where to go on. None: there is nothing more to look at."""
    looked: int
    """How many jobs were looked at, out of those that the store's own filters leave."""
    looked_until: datetime | None
    """When the last of those had been submitted."""
    withheld: int
    """How many of them cannot be searched for text: they are encrypted, and their key is not here."""

    def __iter__(self) -> Iterator[JobRow]:
        return iter(self.rows)


async def search(
    context: Context,
    query: Query,
    wanted: Wanted,
    *,
    limit: int,
    cursor: str | None,
    look_max: int,
) -> SearchPage:
    direction = "d" if query.newest_first else "a"
    after = None if cursor is None else seq_of(cursor, direction)
    rows: list[JobRow] = []
    looked = withheld = 0
    last: Job | None = None
    is_all = False
    while not is_all and len(rows) < limit and looked < look_max:
        size = min(_PAGE_JOBS, look_max - looked)
        page = await context.store.find(
            replace(query, tenant=context.tenant, after_seq=after, limit=size)
        )
        is_all = len(page) < size
        for job in page:
            if len(rows) >= limit:
                is_all = False
                break
            looked += 1
            last = job
            withheld += wanted.text is not None and is_sealed(job.payload_json)
            if wanted.takes(job):
                rows.append(row_of(job))
        after = after if last is None else last.seq
    return SearchPage(
        rows=tuple(rows),
        cursor=None if is_all or last is None else cursor_at(last, direction),
        looked=looked,
        looked_until=None if last is None else last.created_at,
        withheld=withheld,
    )


def row_of(job: Job) -> JobRow:
    failure = job.failure
    same = {name: getattr(job, name) for name in _SAME}
    return JobRow(
        **same,
        category=None if failure is None else failure.category,
        code=None if failure is None else failure.code,
        error_group=fingerprint_of(job),
        payload_bytes=len(job.payload_json),
        result_bytes=len(job.result_json or b""),
        checkpoint_bytes=len(job.checkpoint_json or b""),
    )


_SAME = tuple(name for name in JobRow.__struct_fields__ if name in Job.__struct_fields__)


def _within(at: datetime | None, first: datetime | None, end: datetime | None) -> bool:
    if first is None and end is None:
        return True
    return at is not None and (first is None or at >= first) and (end is None or at < end)


def _text(job: Job) -> str:
    """What cannot be read has no text."""
    if is_sealed(job.payload_json):
        return ""
    return job.payload_json.decode(errors="replace").casefold()
