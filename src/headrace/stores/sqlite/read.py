"""Finding jobs: by id, by filter, and those that maintenance looks for.

`find` answers in order of seq. When an index holds few candidates they are taken from it, filtered and
sorted. When every index holds many, a match is not rare, and walking in order finds a page soon.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

from headrace.clock import to_us
from headrace.model import CLAIMABLE, LEASED, TERMINAL, Job, State
from headrace.stores.base import Query
from headrace.stores.sqlite import tags
from headrace.stores.sqlite.rows import jobs_by_seq, seqs_of_ids, us_or_none
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
_SPAWNED = query("spawned")
_LAPSED = query("lapsed")
_OUTLIVED = query("outlived")

CANDIDATES_MAX = 10_000
"""Up to this many candidates are filtered and sorted; past it the jobs are walked in order."""

_SEQ_MAX = 2**63 - 1


def get(view: Snapshot, ids: Sequence[str]) -> dict[str, Job]:
    return {job.id: job for job in jobs_by_seq(view, seqs_of_ids(view, ids))}


def find(view: Snapshot, wanted: Query) -> list[Job]:
    return jobs_by_seq(view, find_seqs(view, wanted))


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


def spawned(view: Snapshot, parent_id: str) -> list[Job]:
    return jobs_by_seq(view, sorted(view.numbers(_SPAWNED, {"parent_id": parent_id})))


def lapsed(view: Snapshot, now: datetime, limit: int, tenant: str | None) -> list[Job]:
    jobs = _overdue(view, _LAPSED, now, limit, tenant)
    return sorted(jobs, key=attrgetter("lease_until", "seq"))


def outlived(view: Snapshot, now: datetime, limit: int, tenant: str | None) -> list[Job]:
    jobs = _overdue(view, _OUTLIVED, now, limit, tenant)
    return sorted(jobs, key=attrgetter("expires_at", "seq"))


def _overdue(view: Snapshot, sql: str, now: datetime, limit: int, tenant: str | None) -> list[Job]:
    bound = {
        "now": to_us(now),
        "limit": max(limit, 0),
        "tenant": tenant,
    }
    return jobs_by_seq(view, view.numbers(sql, bound))


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
