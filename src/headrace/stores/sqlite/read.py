"""Reading jobs, keys and how many there are.

`find` answers in order of seq. When an index holds few candidates they are taken from it, filtered and
sorted. When every index holds many, a match is not rare, and walking in order finds a page soon.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from headrace.clock import to_us
from headrace.model import CLAIMABLE, LEASED, TERMINAL, Job, State
from headrace.stores.base import Backlog, KeyScope, Query, Tally
from headrace.stores.sqlite import tags
from headrace.stores.sqlite.lanes import STATES
from headrace.stores.sqlite.rows import STATE_OF, jobs_by_seq, seqs_of_ids, us_or_none
from headrace.stores.sqlite.session import Snapshot
from headrace.stores.sqlite.sql import json_list, json_list_or_none, query

_LANES = query("find_lanes")
_AMONG = query("find_among")
_OLDEST = query("find_oldest")
_NEWEST = query("find_newest")
_TAGGED_OLDEST = query("find_tagged_oldest")
_TAGGED_NEWEST = query("find_tagged_newest")
_CLAIMABLE = query("find_claimable")
_BLOCKED = query("find_blocked")
_LEASED = query("find_leased")
_ENDED = query("find_ended")
_IN_LANES = query("find_in_lanes")
_COUNT = query("count")
_DELAYED = query("count_delayed")
_TAGGED = query("count_tagged")
_BACKLOG = query("backlog")
_KEYED = query("key_holders")

CANDIDATES_MAX = 10_000
"""Up to this many candidates are filtered and sorted; past it the jobs are walked in order."""

_SEQ_MAX = 2**63 - 1

_DELAYED_STATES = (State.PENDING, State.RETRYING, State.LOST)  # as count_delayed.sql lists them


def get(view: Snapshot, ids: Sequence[str]) -> dict[str, Job]:
    return {job.id: job for job in jobs_by_seq(view, seqs_of_ids(view, ids))}


def find(view: Snapshot, wanted: Query) -> list[Job]:
    return jobs_by_seq(view, find_seqs(view, wanted))


def keyed(view: Snapshot, scopes: Sequence[KeyScope], now: datetime) -> dict[KeyScope, str]:
    """The ids of the jobs that hold these keys."""
    if not scopes:
        return {}
    wanted = msgspec.json.encode(
        [[scope.tenant, scope.queue, scope.type, scope.key] for scope in scopes]
    ).decode()
    rows = view.connection.execute(_KEYED, {"scopes": wanted, "now": to_us(now)}).fetchall()
    return {scopes[position]: job_id for position, job_id in rows}


def count(
    view: Snapshot,
    now: datetime,
    tenant: str | None,
    queues: Sequence[str] | None,
    wanted_tags: Sequence[str],
) -> list[Tally]:
    bound: dict[str, Any] = {
        "now": to_us(now),
        "tenant": tenant,
        "queues": json_list_or_none(queues),
    }
    if wanted_tags:
        driver = tags.rarest(view, wanted_tags)
        return _count_tagged(view, {**bound, "tag": driver.tag, "others": driver.others})
    return _count_lanes(view, bound)


def backlog(view: Snapshot, tenant: str | None, queue: str | None) -> Backlog:
    bound = {"tenant": tenant, "queue": queue}
    jobs, payload_bytes = view.connection.execute(_BACKLOG, bound).fetchone()
    return Backlog(jobs, payload_bytes)


def find_seqs(view: Snapshot, wanted: Query) -> list[int]:
    """The seqs of the jobs that match, in order."""
    if wanted.limit <= 0:
        return []
    bound = _bound(view, wanted)
    candidates = _candidates(view, wanted, bound)
    if candidates is not None:
        found = view.numbers(_AMONG, {**bound, "candidates": json_list(candidates)})
        return sorted(found, reverse=wanted.newest_first)[: wanted.limit]
    if wanted.tags:
        driver = tags.rarest(view, wanted.tags)
        bound |= {"tag": driver.tag, "others": driver.others}
        walk = _TAGGED_NEWEST if wanted.newest_first else _TAGGED_OLDEST
    else:
        walk = _NEWEST if wanted.newest_first else _OLDEST
    return sorted(view.numbers(walk, bound), reverse=wanted.newest_first)


def _bound(view: Snapshot, wanted: Query) -> dict[str, Any]:
    """The parameters that every query of this module may name."""
    after = wanted.after_seq
    return {
        "lanes": _lanes(view, wanted) if _names_lanes(wanted) else None,
        "states": json_list_or_none(wanted.states),
        "others": json_list(wanted.tags),
        "assignee": wanted.assignee,
        "created_from": us_or_none(wanted.created_from),
        "created_before": us_or_none(wanted.created_before),
        "finalized_before": us_or_none(wanted.finalized_before),
        "above": 0 if after is None or wanted.newest_first else after,
        "below": _SEQ_MAX if after is None or not wanted.newest_first else after,
        "limit": wanted.limit,
    }


def _names_lanes(wanted: Query) -> bool:
    return not (wanted.tenant is None and wanted.queues is None and wanted.types is None)


def _lanes(view: Snapshot, wanted: Query) -> str:
    """The lanes that the filter leaves, as a JSON list."""
    names = {
        "tenant": wanted.tenant,
        "queues": json_list_or_none(wanted.queues),
        "types": json_list_or_none(wanted.types),
    }
    return json_list(view.numbers(_LANES, names))


def _candidates(view: Snapshot, wanted: Query, bound: dict[str, Any]) -> list[int] | None:
    """Few jobs among which are all that match; None when no index offers so few."""
    if wanted.ids is not None:
        return seqs_of_ids(view, wanted.ids)
    if wanted.tags:
        return None  # the walk along the rarest tag is in order already
    if bound["lanes"] is not None:
        in_lanes = _few(view, [(_IN_LANES, bound)])
        if in_lanes is not None:
            return in_lanes
    if wanted.states is not None or wanted.finalized_before is not None:
        states = TERMINAL if wanted.states is None else frozenset(wanted.states)
        lanes = bound["lanes"] or _lanes(view, wanted)
        return _few(view, _by_state(states, {**bound, "lanes": lanes}))
    return None


def _by_state(states: frozenset[State], bound: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The index of each state, or group of states, with its parameters."""
    indexes = [(_ENDED, {**bound, "state": str(state)}) for state in sorted(states & TERMINAL)]
    if states & LEASED:
        indexes.append((_LEASED, bound))
    if states & CLAIMABLE:
        indexes.append((_CLAIMABLE, bound))
    if State.BLOCKED in states:
        indexes.append((_BLOCKED, bound))
    return indexes


def _few(view: Snapshot, indexes: list[tuple[str, dict[str, Any]]]) -> list[int] | None:
    """What these indexes offer together, unless it is too much."""
    found: list[int] = []
    for sql, bound in indexes:
        limit = CANDIDATES_MAX + 1 - len(found)
        found += view.numbers(sql, {**bound, "limit": limit})
        if len(found) > CANDIDATES_MAX:
            return None
    return found


def _count_lanes(view: Snapshot, bound: dict[str, Any]) -> list[Tally]:
    delayed = _count_delayed(view, bound)
    tallies: list[tuple[str, str, State, int, int]] = []
    for tenant, queue, *sums in view.connection.execute(_COUNT, bound):
        counts, failures = sums[: len(STATES)], sums[len(STATES) :]
        tallies += [
            (tenant, queue, state, jobs, failed)
            for state, jobs, failed in zip(STATES, counts, failures, strict=True)
            if jobs
        ]
    return [
        Tally(
            tenant=tenant,
            queue=queue,
            state=state,
            jobs=jobs,
            delayed=delayed[tenant, queue, state],
            failures=failed,
        )
        for tenant, queue, state, jobs, failed in sorted(tallies)
    ]


def _count_delayed(view: Snapshot, bound: dict[str, Any]) -> Counter[tuple[str, str, State]]:
    """Claimable jobs that are not due yet."""
    delayed: Counter[tuple[str, str, State]] = Counter()
    rows = view.connection.execute(_DELAYED, bound).fetchall()
    view.lanes.learn(lane for lane, *_ in rows)
    for lane, *counts in rows:
        key = view.lanes.key(lane)
        for state, jobs in zip(_DELAYED_STATES, counts, strict=True):
            delayed[key.tenant, key.queue, state] += jobs
    return delayed


def _count_tagged(view: Snapshot, bound: dict[str, Any]) -> list[Tally]:
    return [
        Tally(
            tenant=tenant,
            queue=queue,
            state=STATE_OF[state],
            jobs=jobs,
            delayed=delayed,
            failures=failures,
        )
        for tenant, queue, state, jobs, delayed, failures in view.connection.execute(_TAGGED, bound)
    ]
