"""Jobs that are like one that was checked before: made quickly, and the same in every field."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from headrace import lifecycle
from headrace.clock import ManualClock
from headrace.errors import HeadraceError, InvalidId
from headrace.manager.context import Context
from headrace.manager.placement import Draft, place
from headrace.manager.submission import draft_all
from headrace.model import fresh_ids
from headrace.policy import IdSource, Policies, Policy
from headrace.retry import Constant
from headrace.spec import JobSpec, Template
from headrace.stores.memory import MemoryStore

fields = st.fixed_dictionaries(
    {},
    optional={
        "queue": st.sampled_from(["default", "mail"]),
        "priority": st.sampled_from([0, 2, "high"]),
        "tags": st.sampled_from([(), ("a",), ("b", "a", "a")]),
        "delay_seconds": st.sampled_from([None, 0, 5, timedelta(minutes=2)]),
        "limit_key": st.sampled_from([None, "k"]),
        "correlation_id": st.sampled_from([None, "c"]),
        "lease_seconds": st.sampled_from([None, 30, 1.5]),
        "timeout_seconds": st.sampled_from([10, 20.5]),
        "lifetime_seconds": st.sampled_from([None, 60]),
        "max_attempts": st.sampled_from([None, 7]),
        "backoff": st.sampled_from([None, Constant(2.0)]),
        "key": st.sampled_from([None, "key"]),
        "callback_url": st.sampled_from([None, "https://example.org/"]),
    },
)


def context(clock: ManualClock) -> Context:
    policies = Policies(queues={"mail": Policy(max_attempts=9, lifetime_seconds=None)})
    return Context(MemoryStore(), clock, policies, None, random.Random(1))


def without_ids(drafts: list[Draft]) -> list[Any]:
    """The riders of a job name it, so they are compared by their number."""
    return [
        (replace(one.job, id="j"), one.dependencies, len(one.riders), one.job.key and one.key_rule)
        for one in drafts
    ]


@given(kinds=st.lists(fields, min_size=1, max_size=4), seconds=st.sampled_from([0, 0.5, 90_000]))
def test_a_draft_is_the_same_with_and_without_what_was_checked_before(
    kinds: list[dict[str, Any]], seconds: float
) -> None:
    clock = ManualClock()
    remembering = context(clock)
    specs = [JobSpec(type="t", payload=n, **kinds[n % len(kinds)]) for n in range(12)]
    draft_all(remembering, specs)
    clock.advance(seconds)
    quick = draft_all(remembering, specs)
    slow = [draft_all(context(clock), [one])[0] for one in specs]
    assert without_ids(quick) == without_ids(slow)


async def test_what_is_born_like_another_is_born_as_if_alone() -> None:
    clock = ManualClock()
    remembering = context(clock)
    kinds: list[dict[str, Any]] = [
        {},
        {"tags": ("a", "b"), "delay_seconds": 7, "correlation_id": "c"},
        {"type": "u", "priority": "low", "limit_key": "k"},
    ]
    specs = [
        JobSpec(**({"type": "t", "payload": "é" * n} | kinds[n % len(kinds)])) for n in range(60)
    ]
    draft_all(remembering, specs)
    drafts = draft_all(remembering, specs)
    assert any(one.like is not None for one in drafts)
    ids = {one.job.id: one.job.id for one in drafts}
    born = (await place(remembering, drafts, ids, None)).born
    assert born == [lifecycle.submit(replace(one.job)) for one in drafts]


def test_what_can_change_under_our_hands_is_checked_each_time() -> None:
    policy, now = Policy(), datetime(2026, 1, 1, tzinfo=UTC)
    (draft,) = draft_all(context(ManualClock(now)), [JobSpec(type="t")])

    class Text(str):
        __slots__ = ()

    for spec in (
        JobSpec(type="t", tags=["a"]),
        JobSpec(type="t", tags=(Text("a"),)),
        JobSpec(type="t", limit_key=Text("k")),
        JobSpec(type="t", key="k"),
        JobSpec(type="t", after="j"),
        JobSpec(type="t", on_success=[JobSpec(type="u")]),
    ):
        assert Template.of(spec, policy, draft.job) is None


def test_a_job_that_is_not_alike_is_refused_as_before() -> None:
    remembering = context(ManualClock())
    draft_all(remembering, [JobSpec(type="t")])
    for wrong in (
        {"payload": float("nan")},
        {"id": ""},
        {"tags": ("",)},
        {"priority": 9},
        {"run_at": 3},
    ):
        with pytest.raises(HeadraceError):
            draft_all(remembering, [JobSpec(type="t", **wrong)])


def test_another_policy_of_the_queue_is_followed_at_once() -> None:
    remembering = context(ManualClock())
    (first,) = draft_all(remembering, [JobSpec(type="t")])
    remembering.policies = Policies(default=Policy(lease_seconds=77.0))
    (second,) = draft_all(remembering, [JobSpec(type="t")])
    assert (first.job.lease_seconds, second.job.lease_seconds) == (30.0, 77.0)
    remembering.policies = Policies(default=Policy(ids=IdSource.CLIENT))
    for _ in range(2):
        draft_all(remembering, [JobSpec(type="t", id="mine")])
        with pytest.raises(InvalidId):
            draft_all(remembering, [JobSpec(type="t")])


def test_fresh_ids_are_uuids_of_version_4_and_all_different() -> None:

    drawn = fresh_ids(1500)
    ids = [next(drawn) for _ in range(3000)]
    assert len(set(ids)) == 3000
    assert all(str(uuid.UUID(one)) == one and uuid.UUID(one).version == 4 for one in ids)
    assert {uuid.UUID(one).variant for one in ids} == {uuid.RFC_4122}
    for position in (0, 9, 15, 20, 35):  # every free digit takes every value
        assert {one[position] for one in ids} == set("0123456789abcdef")
