"""The completion of many at once: what `apply` makes of each, or nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import HeadraceError
from headrace.lifecycle import Complete, Completions, apply
from headrace.model import Change, Job, State
from tests.unit.samples import NOW, TOKEN, job_in

times = st.sampled_from([None, *(NOW + timedelta(seconds=s) for s in (-3600, -1, 0, 0.5, 3600))])
fields = st.fixed_dictionaries(
    {},
    optional={
        "updated_at": times.filter(bool),
        "assigned_at": times,
        "started_at": times,
        "lease_until": times,
        "expires_at": times,
        "timeout_seconds": st.sampled_from([None, 0.5, 1.0, 3600.0, 7200.0]),
        "result_json": st.sampled_from([None, b"1"]),
        "token": st.sampled_from([TOKEN, "2.other", None]),
        "failures": st.integers(0, 2),
        "losses": st.integers(0, 2),
        "attempt": st.integers(1, 3),
        "priority": st.integers(0, 4),
        "limit_key": st.sampled_from([None, "k"]),
        "progress": st.sampled_from([None, 0.5]),
    },
)
results = st.sampled_from([None, b"null", b'"x"'])


def applied(job: Job, result_json: bytes | None, now: datetime) -> Change | None:
    """What the lifecycle makes of it; None: it refuses."""
    try:
        return apply(job, Complete(token=TOKEN, result_json=result_json), now)
    except HeadraceError:
        return None


@given(state=st.sampled_from(list(State)), given=st.lists(fields, min_size=1), result=results)
def test_a_completion_is_what_the_lifecycle_makes_of_it(
    state: State, given: list[dict[str, Any]], result: bytes | None
) -> None:
    completions = Completions(NOW)
    for one in given:
        job = job_in(state, **one)
        change = completions.of(job, TOKEN, result)
        assert change is None or change == applied(job, result, NOW)


@given(given=st.lists(fields, min_size=1), result=results)
def test_the_usual_outcome_is_never_left_to_the_lifecycle(
    given: list[dict[str, Any]], result: bytes | None
) -> None:
    """Of jobs that were claimed in the past, by the clock that their holder goes by."""
    completions = Completions(NOW)
    for one in given:
        job = job_in(State.RUNNING, **one)
        past = [job.updated_at, job.assigned_at, job.started_at]
        if all(time is not None and time <= NOW for time in past):
            assert completions.of(job, TOKEN, result) == applied(job, result, NOW)


def test_the_usual_outcome_is_one_of_them() -> None:
    change = Completions(NOW).of(job_in(State.RUNNING), TOKEN, b"3")
    assert change is not None
    assert change == applied(job_in(State.RUNNING), b"3", NOW)
    assert (change.after.state, change.event.run_us) == (State.COMPLETED, 3_600_000_000)
