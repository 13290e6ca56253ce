"""The statement made for completions: equal to the pure rule, and to the statement for any change."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from headrace import lifecycle
from headrace.model import Category, Change, DependencyKind, Edge, Failure, Job, State
from headrace.policy import CancelMode
from headrace.stores.base import Commit, EventQuery
from headrace.stores.postgres import PostgresStore, commit
from tests.stores.postgres.jobs import NOW, draft, insert, request

LATER = NOW + timedelta(seconds=3, microseconds=1234567)
RESULTS = (None, b"[1]", b'"' + b"x" * 5000 + b'"')


async def _leased(store: PostgresStore, count: int = 6) -> list[Job]:
    await insert(store, *(draft(id=f"job-{n}", tags=("a",), key=f"k{n}") for n in range(count)))
    return list(await store.claim(request(count)))


def _completed(jobs: list[Job]) -> list[Change]:
    """In an order that is not that of the seqs."""
    return [
        lifecycle.apply(
            job, lifecycle.Complete(token=job.token, result_json=RESULTS[number % 3]), LATER
        )
        for number, job in reversed(list(enumerate(jobs)))
    ]


@pytest.fixture(params=["made for it", "made for any change"])
def statements(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "made for any change":
        monkeypatch.setattr(commit, "_are_plain_completions", lambda _: False)


@pytest.mark.usefixtures("statements")
async def test_a_completion_writes_what_the_lifecycle_says(store: PostgresStore) -> None:
    jobs = await _leased(store)
    tail = await store.tail()
    changes = _completed(jobs)
    assert (await store.commit(Commit(changes=changes))).applied == [True] * len(jobs)
    stored = await store.get([job.id for job in jobs])
    assert stored == {change.after.id: change.after for change in changes}
    events = await store.events(EventQuery(after=tail))
    assert [replace(event, seq=0, cursor="") for event in events] == [
        change.event for change in changes
    ]


@pytest.mark.usefixtures("statements")
async def test_a_completion_may_say_what_went_wrong(store: PostgresStore) -> None:
    (job,) = await _leased(store, 1)
    said = Failure("completed, but", Category.TEMPORARY, "E1")
    change = lifecycle.apply(
        job, lifecycle.Complete(token=job.token, failure=said, result_json=b"1"), LATER
    )
    assert (await store.commit(Commit(changes=[change]))).applied == [True]
    assert await store.get([job.id]) == {job.id: change.after}
    event = (await store.events(EventQuery(job_id=job.id)))[-1]
    assert replace(event, seq=0, cursor="") == change.event


@pytest.mark.usefixtures("statements")
async def test_what_has_moved_on_is_left_alone(store: PostgresStore) -> None:
    first, second, third, *_ = await _leased(store)
    cancelling = lifecycle.apply(
        second,
        lifecycle.Cancel(mode=CancelMode.COOPERATIVE, failure=None),
        NOW,
    )
    assert (await store.commit(Commit(changes=[cancelling]))).applied == [True]
    stolen = replace(third, token="1.another")
    answer = await store.commit(Commit(changes=_completed([first, second, stolen])))
    assert answer.applied == [False, False, True]
    states = {
        job.id: job.state for job in (await store.get([first.id, second.id, third.id])).values()
    }
    assert states == {
        first.id: State.COMPLETED,
        second.id: State.CANCELLING,
        third.id: State.RUNNING,
    }


@pytest.mark.usefixtures("statements")
async def test_it_gives_outcomes_to_edges(store: PostgresStore) -> None:
    parents = await _leased(store, 2)
    children = [draft(id=f"child-{n}", state=State.BLOCKED) for n in range(2)]
    edges = [
        Edge(parent.id, child.id, DependencyKind.AFTER)
        for parent, child in zip(parents, children, strict=True)
    ]
    await insert(store, *children, edges=edges, parents=dict.fromkeys([job.id for job in parents]))
    answer = await store.commit(Commit(changes=_completed(parents)))
    assert list(answer.touched) == [
        replace(edge, outcome=State.COMPLETED) for edge in reversed(edges)
    ]
