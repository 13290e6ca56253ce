"""The list of jobs: filters in the address, pages by cursor, and how far it has looked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from headrace import duration
from headrace.dashboard.asked import Asked, Values, View
from headrace.dashboard.links import Value
from headrace.dashboard.same import Same, command, curl
from headrace.errors import Forbidden, InvalidInput
from headrace.model import LEASED, TERMINAL, Job, State

PAGE_JOBS = 50
GROUPS: Mapping[str, Sequence[State]] = {
    "waiting": (State.BLOCKED, State.PENDING, State.RETRYING, State.LOST),
    "running": (State.RUNNING, State.CANCELLING),
    "failed": (State.FAILED, State.DEAD),
    "ended": tuple(state for state in State if state in TERMINAL),
}
"""What people look for most, in one click."""


@dataclass(frozen=True)
class Filters:
    """What is looked for, as it stands in the address."""

    states: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    worker: str | None = None
    since: str | None = None
    until: str | None = None
    codes: tuple[str, ...] = ()
    error_group: str | None = None
    key: str | None = None
    correlation_id: str | None = None
    id_prefix: str | None = None
    text: str | None = None
    """In the arguments, in whatever case."""
    ended_since: str | None = None
    ended_until: str | None = None
    oldest_first: bool = False

    @classmethod
    def given(cls, values: Values) -> Filters:
        return cls(
            states=values.words("state"),
            queues=values.words("queue"),
            types=values.words("type"),
            tags=values.words("tag"),
            worker=values.word("worker"),
            since=values.word("since"),
            until=values.word("until"),
            codes=values.words("code"),
            error_group=values.word("error_group"),
            key=values.word("key"),
            correlation_id=values.word("correlation_id"),
            id_prefix=values.word("id_prefix"),
            text=values.word("text"),
            ended_since=values.word("ended_since"),
            ended_until=values.word("ended_until"),
            oldest_first=values.word("order") == "oldest",
        )

    @property
    def query(self) -> dict[str, Value]:
        """The same for an address."""
        return {
            "state": self.states,
            "queue": self.queues,
            "type": self.types,
            "tag": self.tags,
            "worker": self.worker,
            "since": self.since,
            "until": self.until,
            "code": self.codes,
            "error_group": self.error_group,
            "key": self.key,
            "correlation_id": self.correlation_id,
            "id_prefix": self.id_prefix,
            "text": self.text,
            "ended_since": self.ended_since,
            "ended_until": self.ended_until,
            "order": "oldest" if self.oldest_first else None,
        }

    @property
    def are_none(self) -> bool:
        return self == Filters(oldest_first=self.oldest_first)

    def chips(self) -> Sequence[tuple[str, str, Mapping[str, Value]]]:
        """Each filter: its name, its value, and the query without it."""
        found: list[tuple[str, str, Mapping[str, Value]]] = []
        for name, value in self.query.items():
            if name == "order" or value is None:
                continue
            several = isinstance(value, tuple)
            for one in value if several else (value,):  # type: ignore[union-attr]  # a tuple
                left: Value = tuple(v for v in value if v != one) if several else None  # type: ignore[union-attr]
                found.append((name, str(one), {**self.query, name: left}))
        return found

    @property
    def are_searched(self) -> bool:
        """Some of them are compared job by job: the store has no index for them."""
        return bool(self.codes) or any(
            one is not None
            for one in (
                *(self.error_group, self.key, self.correlation_id, self.id_prefix, self.text),
                *(self.ended_since, self.ended_until),
            )
        )

    async def read(self, asked: Asked, cursor: str | None) -> Listed:
        """A page of what matches, as far as one answer looks."""
        now = asked.now

        def time(text: str | None) -> datetime | None:
            return None if text is None else moment(text, now)

        stored: dict[str, Any] = {
            "queues": self.queues or None,
            "types": self.types or None,
            "states": self.states or None,
            "tags": self.tags,
            "assignee": self.worker,
            "created_from": time(self.since),
            "created_before": time(self.until),
            "newest_first": not self.oldest_first,
            "limit": PAGE_JOBS,
            "cursor": cursor,
        }
        if not self.are_searched:
            page = await asked.manager.find(**stored)
            last = page.jobs[-1].created_at if page.jobs else None
            return Listed(page.jobs, page.cursor, last, len(page.jobs))
        if self.text is not None and not asked.sees_contents:
            raise Forbidden("searching what is in jobs needs the scope read:payload")
        found = await asked.manager.search(
            **stored,
            codes=self.codes or None,
            error_group=self.error_group,
            key=self.key,
            correlation_id=self.correlation_id,
            id_prefix=self.id_prefix,
            text=self.text,
            ended_from=time(self.ended_since),
            ended_before=time(self.ended_until),
        )
        jobs = await asked.manager.look_up([row.id for row in found.rows])
        listed = [jobs[row.id] for row in found.rows if row.id in jobs]
        return Listed(listed, found.cursor, found.looked_until, found.looked, found.withheld)


class Listed(NamedTuple):
    """Some jobs, and how far was looked for them."""

    jobs: Sequence[Job]
    cursor: str | None
    looked_until: datetime | None
    looked: int
    withheld: int = 0
    """So many cannot be searched for text: they are encrypted, and their key is not here."""


def moment(text: str, now: datetime) -> datetime:
    """A time, or how long ago: `2026-11-19T14:02Z`, `2h`, `7d`. Without a zone it is UTC."""
    try:
        return now - duration_of(text)
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"{text!r} is neither a time (2026-12-01T09:00Z) nor how long ago (2h, 7d); nothing was read"
        ) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def duration_of(text: str) -> timedelta:
    return timedelta(seconds=duration.parse(text))


async def jobs(asked: Asked) -> View:
    filters = Filters.given(asked)
    cursor = asked.word("cursor")
    page = await filters.read(asked, cursor)
    return View(
        "jobs.html",
        "Jobs",
        {
            "filters": filters,
            "jobs": page.jobs,
            "older": None
            if page.cursor is None
            else asked.links.with_query("jobs", filters.query, cursor=page.cursor),
            "first": None if cursor is None else asked.links.with_query("jobs", filters.query),
            "looked_to": page.looked_until,
            "looked": page.looked,
            "withheld": page.withheld,
            "groups": GROUPS,
            "several_tenants": asked.is_operator and len({job.tenant for job in page.jobs}) > 1,
        },
        same=(_same(asked, filters),),
        topics=_topics(filters),
        # A page further back is what somebody is reading: it changes when its jobs do.
        every_seconds=None if cursor is not None else _every(page.jobs),
    )


def _every(jobs: Sequence[Job]) -> float:
    """Progress leaves no event: what runs is looked at more often."""
    return 2.0 if any(job.state in LEASED for job in jobs) else 5.0


def _same(asked: Asked, filters: Filters) -> Same:
    options = {
        "queue": filters.queues,
        "type": filters.types,
        "state": filters.states,
        "tag": filters.tags,
        "worker": filters.worker,
        "created_from": _told(filters.since, asked.now),
        "created_before": _told(filters.until, asked.now),
    }
    line = command(
        "list",
        **options,
        oldest_first="" if filters.oldest_first else None,
        tenant=asked.manager.tenant,
    )
    return Same("List these jobs", line, curl(asked.address, "/jobs", query=options))


def _told(text: str | None, now: datetime) -> str | None:
    return None if text is None else moment(text, now).isoformat(timespec="seconds")


def _topics(filters: Filters) -> Sequence[str]:
    if filters.queues:
        return [f"queue:{name}" for name in filters.queues]
    if filters.types:
        return [f"type:{name}" for name in filters.types]
    return ["*"]
