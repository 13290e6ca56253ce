"""The checker finds nothing in a lawful history, and finds every breach that is put into it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from headrace.model import Category, DependencyKind, Event, EventKind, Failure, State
from headrace.stores.base import KeyScope
from headrace.testing.checker import (
    INVARIANTS,
    ClientLog,
    History,
    Reading,
    Run,
    Said,
    Submission,
    check,
    read_client_logs,
    signature,
    signed,
)
from tests.unit.histories import LEASE_SECONDS, lawful_history

SECOND = timedelta(seconds=1)


async def test_a_lawful_history_has_no_violations() -> None:
    history = await lawful_history()
    assert check(history) == []
    assert {job.state for job in history.jobs.values()} == {State.COMPLETED, State.DEAD}
    assert len(history.readings) > 1


# --- spoiling ------------------------------------------------------------------------------------


def place(history: History, job_id: str, kind: EventKind, nth: int = 0) -> int:
    found = [
        place
        for place, event in enumerate(history.events)
        if (event.job_id, event.kind) == (job_id, kind)
    ]
    return found[nth]


def with_event(history: History, where: int, /, **changes: Any) -> History:
    events = list(history.events)
    events[where] = replace(events[where], **changes)
    return replace(history, events=events)


def without_events(history: History, *places: int) -> History:
    kept = [event for at, event in enumerate(history.events) if at not in places]
    return replace(history, events=kept, readings=())


def moved(history: History, at: int, to: int) -> History:
    events = list(history.events)
    events.insert(to, events.pop(at))
    return replace(history, events=events, readings=())


def added(history: History, after: int, event: Event) -> History:
    events = list(history.events)
    events.insert(after + 1, replace(event, seq=10_000, cursor="added"))
    return replace(history, events=events, readings=())


def with_job(history: History, job_id: str, **changes: Any) -> History:
    return replace(history, jobs={**history.jobs, job_id: replace(history.jobs[job_id], **changes)})


def with_runs(history: History, change: Callable[[Run], Run | None], *more: Run) -> History:
    runs = [one for run in history.client.runs if (one := change(run)) is not None]
    return replace(history, client=replace(history.client, runs=[*runs, *more]))


def with_edge(history: History, child: str, **changes: Any) -> History:
    edges = [replace(edge, **changes) if edge.child_id == child else edge for edge in history.edges]
    return replace(history, edges=edges)


def lost_row(history: History) -> History:
    return replace(history, jobs={k: v for k, v in history.jobs.items() if k != "simple"})


def unasked_job(history: History) -> History:
    asked = [one for one in history.client.submissions if one.job_id != "simple"]
    return replace(history, client=replace(history.client, submissions=asked))


def row_without_events(history: History) -> History:
    history = replace(history, events=[e for e in history.events if e.job_id != "simple"])
    return replace(history, readings=())


def run_without_lease(history: History) -> History:
    run = Run(job_id="simple", token="7.x", attempt=7, process=1, began=0.0)
    return with_runs(history, lambda run: run, run)


def run_twice(history: History) -> History:
    return with_runs(history, lambda run: run, history.client.runs[0])


def result_without_run(history: History) -> History:
    return with_runs(history, lambda run: None if run.job_id == "simple" else run)


def result_of_an_unfinished_run(history: History) -> History:
    def cut(run: Run) -> Run:
        return replace(run, said=None, ended=None) if run.job_id == "simple" else run

    return with_runs(history, cut)


def outcome_after_the_loss(history: History) -> History:
    """The zombie's completion is written although its lease was taken back."""
    lost = place(history, "lost", EventKind.LOST)
    done = history.events[place(history, "lost", EventKind.COMPLETED)]
    return added(history, lost, replace(done, attempt=1, before=State.RUNNING))


def result_of_an_old_lease(history: History) -> History:
    return with_job(history, "lost", result_json=b'{"token": "1.old"}')


def message_of_an_old_lease(history: History) -> History:
    at = place(history, "dead", EventKind.DEAD)
    return with_event(history, at, message=signed("1.old", "no"))


def two_tokens_for_one_attempt(history: History) -> History:
    first = history.client.runs[0]
    return with_runs(history, lambda run: run, replace(first, token="1.another"))


def leased_while_held(history: History) -> History:
    return without_events(history, place(history, "lost", EventKind.LOST))


def taken_before_its_time(history: History) -> History:
    at = place(history, "lost", EventKind.LOST)
    leased = history.events[place(history, "lost", EventKind.LEASED)]
    assert leased.lease_until == leased.at + LEASE_SECONDS * SECOND
    return with_event(history, at, at=leased.lease_until - SECOND)


def leased_before_the_last_was_over(history: History) -> History:
    at = place(history, "lost", EventKind.LEASED, 1)
    lost = history.events[place(history, "lost", EventKind.LOST)]
    return with_event(history, at, at=lost.at - SECOND)


def unlawful_step(history: History) -> History:
    at = place(history, "simple", EventKind.LEASED)
    return with_event(history, at, before=State.COMPLETED)


def wrong_kind(history: History) -> History:
    return with_event(history, place(history, "lost", EventKind.LOST), kind=EventKind.RELEASED)


def born_running(history: History) -> History:
    return without_events(history, place(history, "simple", EventKind.ENQUEUED))


def broken_chain(history: History) -> History:
    return without_events(history, place(history, "lost", EventKind.LEASED))


def row_unlike_its_events(history: History) -> History:
    return with_job(history, "simple", state=State.FAILED)


def result_without_a_lease(history: History) -> History:
    """What the table allows only where nothing is fenced: completing a job that is lost."""
    at = place(history, "lost", EventKind.LEASED, 1)
    return with_event(
        without_events(history, at),
        place(history, "lost", EventKind.COMPLETED) - 1,
        before=State.LOST,
    )


def over_budget(history: History) -> History:
    return with_event(history, place(history, "dead", EventKind.DEAD), failures=3)


def spent_and_alive(history: History) -> History:
    return with_job(history, "dead", max_attempts=1)


def costly_snooze(history: History) -> History:
    at = place(history, "whatever", EventKind.SNOOZED)
    return with_event(history, at, losses=1)


def two_jobs_of_one_key(history: History) -> History:
    """The second is stored while the first is still alive."""
    at = place(history, "keyed-later", EventKind.ENQUEUED)
    return moved(history, at, place(history, "keyed", EventKind.LEASED))


def key_used_again(history: History) -> History:
    return replace(history, keys_released=False)


def answer_of_another_key(history: History) -> History:
    asked = Submission(key=KeyScope("default", "default", "t", "other"), answer="keyed")
    client = replace(history.client, submissions=[*history.client.submissions, asked])
    return replace(history, client=client)


def child_before_its_parent(history: History) -> History:
    at = place(history, "child", EventKind.UNBLOCKED)
    return moved(history, at, place(history, "simple", EventKind.LEASED))


def any_before_all(history: History) -> History:
    at = place(history, "whatever", EventKind.UNBLOCKED)
    return moved(history, at, place(history, "dead", EventKind.RETRYING))


def released_twice(history: History) -> History:
    at = place(history, "child", EventKind.UNBLOCKED)
    return added(history, at, history.events[at])


def joined_in_part(history: History) -> History:
    """Its parent has spawned a job that it does not wait for."""
    history = with_edge(history, "child", kind=DependencyKind.FAN_IN)
    parent = next(edge.parent_id for edge in history.edges if edge.child_id == "child")
    return with_job(history, "lost", parent_id=parent)


def fallen_for_nothing(history: History) -> History:
    at = place(history, "fallen", EventKind.DEAD)
    return with_event(history, at, after=State.FAILED)


def ran_before_its_parent_returned(history: History) -> History:
    def early(run: Run) -> Run:
        return replace(run, began=0.0) if run.job_id == "child" else run

    return with_runs(history, early)


def ran_though_its_parent_never_returned(history: History) -> History:
    return with_runs(history, lambda run: None if run.job_id == "simple" else run)


def edge_that_lies(history: History) -> History:
    return with_edge(history, "child", outcome=None)


def orphan(history: History) -> History:
    at = place(history, "child", EventKind.UNBLOCKED)
    places = [n for n, e in enumerate(history.events) if n >= at and e.job_id == "child"]
    history = without_events(history, *places)
    return with_job(history, "child", state=State.BLOCKED, version=1, attempt=0)


def blocked_by_nothing(history: History) -> History:
    return with_job(history, "simple", state=State.BLOCKED)


def missing_event(history: History) -> History:
    return without_events(history, place(history, "lost", EventKind.LOST))


def missing_last_event(history: History) -> History:
    return without_events(history, place(history, "simple", EventKind.COMPLETED))


def event_twice(history: History) -> History:
    return replace(history, events=[*history.events, history.events[-1]], readings=())


def out_of_order(history: History) -> History:
    at = place(history, "simple", EventKind.COMPLETED)
    return moved(history, at, place(history, "simple", EventKind.LEASED))


def with_reading(history: History, after: str, seqs: list[int]) -> History:
    return replace(history, readings=[Reading(after=after, seqs=seqs)])


def reader_that_missed_one(history: History) -> History:
    seqs = [event.seq for event in history.events]
    return with_reading(history, "", seqs[:3] + seqs[4:])


def reader_that_saw_one_twice(history: History) -> History:
    seqs = [event.seq for event in history.events]
    return with_reading(history, history.events[4].cursor, seqs[4:])


def reader_that_saw_more(history: History) -> History:
    seqs = [event.seq for event in history.events]
    return with_reading(history, "", [*seqs, 10_000])


def reader_of_nothing(history: History) -> History:
    return with_reading(history, "nowhere", [1])


def unfinished(history: History) -> History:
    return with_job(history, "simple", state=State.RETRYING)


BREACHES: tuple[tuple[int, Callable[[History], History]], ...] = (
    (1, lost_row),
    (2, unasked_job),
    (2, row_without_events),
    (2, lost_row),
    (2, run_without_lease),
    (2, run_twice),
    (2, result_without_run),
    (2, result_of_an_unfinished_run),
    (3, outcome_after_the_loss),
    (3, result_of_an_old_lease),
    (3, message_of_an_old_lease),
    (3, two_tokens_for_one_attempt),
    (4, leased_while_held),
    (4, taken_before_its_time),
    (4, leased_before_the_last_was_over),
    (5, unlawful_step),
    (5, wrong_kind),
    (5, born_running),
    (5, broken_chain),
    (5, row_unlike_its_events),
    (5, result_without_a_lease),
    (6, over_budget),
    (6, spent_and_alive),
    (6, costly_snooze),
    (7, two_jobs_of_one_key),
    (7, key_used_again),
    (7, answer_of_another_key),
    (8, child_before_its_parent),
    (8, any_before_all),
    (8, released_twice),
    (8, joined_in_part),
    (8, fallen_for_nothing),
    (8, ran_before_its_parent_returned),
    (8, ran_though_its_parent_never_returned),
    (8, edge_that_lies),
    (8, orphan),
    (8, blocked_by_nothing),
    (9, missing_event),
    (9, missing_last_event),
    (9, event_twice),
    (9, out_of_order),
    (9, reader_that_missed_one),
    (9, reader_that_saw_one_twice),
    (9, reader_that_saw_more),
    (9, reader_of_nothing),
    (12, unfinished),
)


@pytest.mark.parametrize(
    ("number", "spoil"), BREACHES, ids=[f"{n}-{spoil.__name__}" for n, spoil in BREACHES]
)
async def test_a_breach_is_found(number: int, spoil: Callable[[History], History]) -> None:
    violations = check(spoil(await lawful_history()))
    found = [one for one in violations if one.invariant.number == number]
    assert found, [str(one) for one in violations]
    assert str(found[0]).startswith(f"{number} {found[0].invariant.name}: ")
    others = {one.number for one in INVARIANTS} - {number}
    assert check(spoil(await lawful_history()), without=others) == found


def test_every_invariant_is_broken_by_some_history() -> None:
    assert {number for number, _ in BREACHES} == {one.number for one in INVARIANTS}


# --- what is no breach ---------------------------------------------------------------------------


async def test_a_stamp_may_be_older_than_its_write_within_bounds() -> None:
    history = leased_before_the_last_was_over(await lawful_history())
    assert check(replace(history, clock_seconds=1.5), without=(5,)) == []


async def test_without_fencing_a_lost_job_may_be_completed() -> None:
    history = replace(result_without_a_lease(await lawful_history()), fenced=False)
    assert not [one for one in check(history) if "no rule" in one.breach.what]


# --- the client's log ----------------------------------------------------------------------------


def test_the_client_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    scope = KeyScope("default", "default", "t", "k")
    one = ClientLog(tmp_path / "one.log")
    one.asked("1", ["a", None], [None, scope])
    one.answered("1", ["a", "b"])
    one.asked("2", ["c"], [None])
    one.began("a", "1.x", 1)
    one.began("b", "1.x", 1)
    one.ended("a", "1.x", Said.COMPLETED)
    other = ClientLog(tmp_path / "two.log")
    other.began("a", "1.x", 1)
    for log in (one, other):
        log.close()
    with (tmp_path / "two.log").open("ab") as file:
        file.write(b'{"type":"ended","job_id":"a"')  # the writer was killed here
    client = read_client_logs(tmp_path)
    assert client.submissions == [
        Submission(job_id="a", answer="a"),
        Submission(key=scope, answer="b"),
        Submission(job_id="c"),
    ]
    assert [(run.job_id, run.said) for run in client.runs] == [
        ("a", Said.COMPLETED),
        ("b", None),
        ("a", None),
    ]
    first = client.runs[0]
    assert first.ended is not None
    assert first.ended >= first.began


def test_signatures() -> None:
    assert signature(signed("3.ab", "it went wrong")) == "3.ab"
    assert signature({"token": "3.ab", "n": 1}) == "3.ab"
    assert signature("it went wrong") is None
    assert signature(None) is None
    assert Failure(signed("1.a", "x"), Category.TEMPORARY).message == "x [token 1.a]"
