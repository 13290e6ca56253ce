"""The lease of many at once: what `apply` makes of each."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import InvalidTransition
from headrace.lifecycle import Claim, Claims, apply
from headrace.model import CLAIMABLE, Change, Job, State
from tests.unit.samples import NOW, job_in

times = st.sampled_from([NOW + timedelta(seconds=s) for s in (-3600, -1, 0, 0.5, 3600)])
seconds = st.sampled_from([None, 0.0, 0.5, 30.0])
fields = st.fixed_dictionaries(
    {},
    optional={
        "updated_at": times,
        "run_at": times,
        "started_at": st.none() | times,
        "scheduled_at": st.none() | times,
        "lease_seconds": seconds,
        "attempt": st.integers(0, 3),
        "failures": st.integers(0, 2),
        "losses": st.integers(0, 2),
        "priority": st.integers(0, 4),
        "limit_key": st.sampled_from([None, "k"]),
        "progress": st.sampled_from([None, 0.5]),
    },
)


def outcome(change: Any, job: Job) -> Change | str:
    try:
        made = change(job)
    except InvalidTransition as refused:
        return str(refused)
    assert isinstance(made, Change)
    return made


@given(
    state=st.sampled_from(sorted(CLAIMABLE)),
    given=st.lists(fields, min_size=1),
    lease_seconds=seconds,
    due_by=st.none() | times,
)
def test_a_claim_is_what_the_lifecycle_makes_of_it(
    state: State, given: list[dict[str, Any]], lease_seconds: float | None, due_by: datetime | None
) -> None:
    command = Claim(worker="w", nonce="n", lease_seconds=lease_seconds, due_by=due_by)
    claims = Claims(command, NOW)
    for one in given:
        job = job_in(state, **one)
        assert outcome(claims.of, job) == outcome(lambda job: apply(job, command, NOW), job)


@pytest.mark.parametrize("state", sorted(set(State) - CLAIMABLE))
def test_what_cannot_be_claimed_is_refused_by_the_lifecycle(state: State) -> None:
    job, command = job_in(state), Claim(worker="w", nonce="n")
    with pytest.raises(Exception, match=job.id) as refused:
        Claims(command, NOW).of(job)
    with pytest.raises(type(refused.value), match=job.id):
        apply(job, command, NOW)
