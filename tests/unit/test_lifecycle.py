"""The one lifecycle: every state × every command, and what each command writes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import history, lifecycle
from headrace.errors import (
    InvalidTransition,
    JobCancelled,
    JobTerminal,
    LeaseExpired,
    Refusal,
    StaleToken,
)
from headrace.lifecycle import RULES, VERBS, Command, Rule, Verb, When
from headrace.model import LEASED, TERMINAL, Category, EventKind, Failure, State
from headrace.policy import CancelMode
from headrace.retry import Constant
from tests.unit.samples import NOW, TOKEN, job_in

FAILURE = Failure("no", Category.TEMPORARY)


def commands(token: str | None) -> list[Command]:
    """Every command in every variant that changes which rule applies."""
    return [
        lifecycle.Unblock(),
        lifecycle.Claim(worker="w2", nonce="m"),
        lifecycle.Complete(token=token),
        lifecycle.Fail(token=token, failure=FAILURE),
        lifecycle.Fail(token=token, failure=FAILURE, retry=False),
        lifecycle.Snooze(token=token, until=NOW + timedelta(hours=1)),
        lifecycle.Release(token=token),
        lifecycle.Stop(token=token),
        *(lifecycle.Cancel(mode=mode) for mode in CancelMode),
        lifecycle.AcknowledgeCancel(token=token, was_executing=True),
        lifecycle.AcknowledgeCancel(token=token, was_executing=False),
        lifecycle.Expire(),
        lifecycle.Abandon(),
        lifecycle.Outlive(),
        *(
            lifecycle.Propagate(target=target)
            for target in (State.FAILED, State.DEAD, State.CANCELLED)
        ),
        lifecycle.Reschedule(run_at=NOW),
        lifecycle.Reschedule(run_at=NOW + timedelta(hours=1)),
        lifecycle.Update(priority=0, tags=("x",)),
        lifecycle.Retime(run_at=NOW),
    ]


# What each pair of state and command leads to, written down a second time by hand. "fenced" and
# "unfenced" differ only where the table says so.
S = State
COMMON: dict[tuple[State, str], State] = {
    (S.BLOCKED, "Unblock"): S.PENDING,
    **{(state, "Retime"): state for state in State if state not in TERMINAL},
    (S.PENDING, "Reschedule"): S.PENDING,
    (S.RETRYING, "Reschedule"): S.PENDING,
    (S.PENDING, "Claim"): S.RUNNING,
    (S.RETRYING, "Claim"): S.RUNNING,
    (S.LOST, "Claim"): S.RUNNING,
    (S.RUNNING, "Complete"): S.COMPLETED,
    (S.CANCELLING, "Complete"): S.COMPLETED,
    (S.RUNNING, "Fail retry"): S.RETRYING,
    (S.RUNNING, "Fail final"): S.FAILED,
    (S.CANCELLING, "Fail retry"): S.CANCELLED,
    (S.CANCELLING, "Fail final"): S.CANCELLED,
    (S.RUNNING, "Snooze"): S.RETRYING,
    (S.CANCELLING, "Snooze"): S.CANCELLED,
    (S.RUNNING, "Release"): S.RETRYING,
    (S.CANCELLING, "Release"): S.CANCELLED,
    (S.RUNNING, "Stop"): S.CANCELLED,
    (S.CANCELLING, "Stop"): S.CANCELLED,
    **{
        (state, "Cancel cooperative"): S.CANCELLED
        for state in (S.BLOCKED, S.PENDING, S.RETRYING, S.LOST)
    },
    **{
        (state, "Cancel immediate"): S.CANCELLED
        for state in (S.BLOCKED, S.PENDING, S.RETRYING, S.LOST)
    },
    **{
        (state, "Cancel not_started"): S.CANCELLED
        for state in (S.BLOCKED, S.PENDING, S.RETRYING, S.LOST)
    },
    (S.RUNNING, "Cancel cooperative"): S.CANCELLING,
    (S.RUNNING, "Cancel immediate"): S.CANCELLED,
    (S.CANCELLING, "Cancel immediate"): S.CANCELLED,
    (S.CANCELLING, "AcknowledgeCancel True"): S.CANCELLED,
    (S.CANCELLING, "AcknowledgeCancel False"): S.ABANDONED,
    (S.RUNNING, "Expire"): S.LOST,
    (S.CANCELLING, "Expire"): S.ABANDONED,
    **{(state, "Abandon"): S.ABANDONED for state in (S.RUNNING, S.CANCELLING, S.RETRYING, S.LOST)},
    **{(state, "Outlive"): S.DEAD for state in State if state not in TERMINAL},
    (S.BLOCKED, "Propagate failed"): S.FAILED,
    (S.BLOCKED, "Propagate dead"): S.DEAD,
    (S.BLOCKED, "Propagate cancelled"): S.CANCELLED,
    **{(state, "Update"): state for state in State if state not in TERMINAL},
}
UNFENCED_TOO: dict[tuple[State, str], State] = {
    (S.LOST, "Complete"): S.COMPLETED,
    (S.ABANDONED, "Complete"): S.COMPLETED,
    (S.LOST, "Fail retry"): S.RETRYING,
    (S.LOST, "Fail final"): S.FAILED,
    (S.LOST, "Release"): S.RETRYING,
    (S.LOST, "Stop"): S.CANCELLED,
    (S.ABANDONED, "Stop"): S.CANCELLED,
}


def name_of(command: Command) -> str:
    match command:
        case lifecycle.Fail(retry=retry):
            return f"Fail {'retry' if retry else 'final'}"
        case lifecycle.Cancel(mode=mode):
            return f"Cancel {mode}"
        case lifecycle.AcknowledgeCancel(was_executing=was):
            return f"AcknowledgeCancel {was}"
        case lifecycle.Propagate(target=target):
            return f"Propagate {target}"
        case _:
            return type(command).__name__


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("token", [TOKEN, None], ids=["fenced", "unfenced"])
def test_every_state_and_command(state: State, token: str | None) -> None:
    expected = COMMON | (UNFENCED_TOO if token is None else {})
    for command in commands(token):
        job = job_in(state, max_attempts=9)
        target = expected.get((state, name_of(command)))
        if target is None:
            with pytest.raises(Refusal):
                lifecycle.apply(job, command, NOW)
        else:
            change = lifecycle.apply(job, command, NOW)
            assert change.after.state is target, name_of(command)
            assert change.before is job


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.source], ids=str)
def test_every_rule_is_reached(rule: Rule) -> None:
    assert rule.source is not None
    spent = rule.when in (When.EXHAUSTED, When.LOSS_FATAL)
    job = job_in(rule.source, max_attempts=1 if spent else 9)
    token = TOKEN if job.state in LEASED and not rule.unfenced else None
    reached = set()
    for command in commands(token):
        if VERBS[type(command)] is rule.verb:
            try:
                reached.add(lifecycle.apply(job, command, NOW).after.state)
            except Refusal:
                continue
    assert rule.target in reached


def test_every_verb_has_a_command_and_a_rule() -> None:
    assert {rule.verb for rule in RULES} == set(Verb)
    assert set(VERBS.values()) == set(Verb) - {Verb.SUBMIT}
    assert len(set(RULES)) == len(RULES)


def test_no_rule_leaves_a_terminal_state_but_abandoned() -> None:
    left = {rule.source for rule in RULES if rule.source in TERMINAL}
    assert left == {State.ABANDONED}
    assert all(
        rule.unfenced and rule.target in TERMINAL for rule in RULES if rule.source in TERMINAL
    )


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("token", [TOKEN, None], ids=["fenced", "unfenced"])
def test_what_every_change_has_in_common(state: State, token: str | None) -> None:
    job = job_in(state, max_attempts=9)
    for command in commands(token):
        try:
            change = lifecycle.apply(job, command, NOW)
        except Refusal:
            continue
        after, event = change.after, change.event
        assert after.version == job.version + 1
        updates = isinstance(command, lifecycle.Update)
        assert after.updated_at == (job.updated_at if updates else NOW)
        assert (after.token is not None) == (after.state in LEASED)
        assert (after.finalized_at is not None) == (after.state in TERMINAL)
        if job.assignee is not None and not isinstance(command, lifecycle.Claim):
            assert (after.assignee, after.assigned_at) == (job.assignee, job.assigned_at)
        assert (event.before, event.after, event.version) == (job.state, after.state, after.version)
        assert (event.attempt, event.failures, event.losses) == (
            after.attempt,
            after.failures,
            after.losses,
        )
        assert (event.run_us is not None) == (job.state in LEASED and after.state not in LEASED)
        for fixed in (
            "id",
            "tenant",
            "queue",
            "type",
            "tags",
            "payload_json",
            "priority",
            "created_at",
        ):
            if not (updates and fixed in history.SAID_BY_USERS):
                assert getattr(after, fixed) == getattr(job, fixed)


def test_claim_writes_the_lease() -> None:
    job = job_in(State.RETRYING)
    after = lifecycle.apply(job, lifecycle.Claim(worker="w2", nonce="m"), NOW).after
    assert (after.attempt, after.token, after.assignee) == (2, "2.m", "w2")
    assert (after.assigned_at, after.started_at) == (NOW, job.started_at)
    assert after.lease_until == NOW + timedelta(seconds=60)
    assert after.scheduled_at == max(job.run_at, job.updated_at)
    short = lifecycle.apply(job, lifecycle.Claim(worker="w", nonce="m", lease_seconds=5), NOW).after
    assert short.lease_until == NOW + timedelta(seconds=5)
    endless = lifecycle.apply(
        job_in(State.PENDING, lease_seconds=None), lifecycle.Claim(worker="w", nonce="m"), NOW
    )
    assert endless.after.lease_until is None


def test_claim_only_when_due() -> None:
    job = job_in(State.PENDING, run_at=NOW + timedelta(microseconds=1))
    with pytest.raises(InvalidTransition):
        lifecycle.apply(job, lifecycle.Claim(worker="w", nonce="m"), NOW)
    lifecycle.apply(job, lifecycle.Claim(worker="w", nonce="m"), NOW + timedelta(microseconds=1))


@given(
    failures=st.integers(0, 5),
    losses=st.integers(0, 5),
    max_attempts=st.one_of(st.none(), st.integers(1, 6)),
)
def test_the_budget(failures: int, losses: int, max_attempts: int | None) -> None:
    if max_attempts is not None and failures + losses >= max_attempts:
        return  # such a job has ended
    job = job_in(State.RUNNING, failures=failures, losses=losses, max_attempts=max_attempts)
    spent = max_attempts is not None and failures + losses + 1 >= max_attempts
    failed = lifecycle.apply(job, lifecycle.Fail(token=TOKEN, failure=FAILURE), NOW).after
    assert failed.state is (State.DEAD if spent else State.RETRYING)
    assert failed.failures == failures + 1
    lost = lifecycle.apply(job, lifecycle.Expire(), NOW).after
    assert lost.state is (State.DEAD if spent else State.LOST)
    assert lost.losses == losses + 1
    for change in (failed, lost):
        assert max_attempts is None or change.failures + change.losses <= max_attempts
    for free in (lifecycle.Snooze(token=TOKEN, until=NOW), lifecycle.Release(token=TOKEN)):
        after = lifecycle.apply(job, free, NOW).after
        assert (after.state, after.failures, after.losses) == (State.RETRYING, failures, losses)


def test_a_late_failure_of_a_lost_job_replaces_its_loss() -> None:
    job = job_in(State.LOST, losses=1, max_attempts=2)
    after = lifecycle.apply(job, lifecycle.Fail(token=None, failure=FAILURE), NOW).after
    assert (after.state, after.failures, after.losses) == (State.RETRYING, 1, 0)


def test_retry_time() -> None:
    job = job_in(State.RUNNING)
    backoff = Constant(initial=7.0, jitter=False)

    def run_at(**fields: Any) -> timedelta:
        command = lifecycle.Fail(token=TOKEN, failure=FAILURE, backoff=backoff, **fields)
        return lifecycle.apply(job, command, NOW).after.run_at - NOW

    assert run_at() == timedelta(seconds=7)
    assert run_at(retry_after=3.5) == timedelta(seconds=3.5)
    assert run_at(retry_after=3.5, retry_at=NOW + timedelta(days=1)) == timedelta(days=1)


def test_guard_order() -> None:
    def write(state: State, token: str, **fields: Any) -> None:
        lifecycle.apply(job_in(state, **fields), lifecycle.Complete(token=token), NOW)

    past = NOW - timedelta(seconds=1)
    for state in (State.CANCELLED, State.ABANDONED):
        with pytest.raises(JobCancelled):
            write(state, "wrong")
    for state in (State.COMPLETED, State.FAILED, State.DEAD):
        with pytest.raises(JobTerminal):
            write(state, "wrong")
    with pytest.raises(StaleToken):
        write(State.RUNNING, "wrong", lease_until=past)
    with pytest.raises(StaleToken):
        write(State.LOST, TOKEN)
    with pytest.raises(LeaseExpired):
        write(State.RUNNING, TOKEN, lease_until=past)
    with pytest.raises(LeaseExpired):
        write(State.RUNNING, TOKEN, lease_until=NOW)


def test_a_refused_job_is_the_same_object() -> None:
    job = job_in(State.COMPLETED)
    copy = msgspec.structs.replace(job)
    with pytest.raises(JobTerminal):
        lifecycle.apply(job, lifecycle.Cancel(mode=CancelMode.IMMEDIATE), NOW)
    assert job == copy


def test_event_kinds() -> None:
    job = job_in(State.RUNNING, max_attempts=9)
    kinds = {
        name_of(command): lifecycle.apply(job, command, NOW).event.kind
        for command in commands(TOKEN)
        if (State.RUNNING, name_of(command)) in COMMON
    }
    assert kinds == {
        "Complete": EventKind.COMPLETED,
        "Fail retry": EventKind.RETRYING,
        "Fail final": EventKind.FAILED,
        "Snooze": EventKind.SNOOZED,
        "Release": EventKind.RELEASED,
        "Stop": EventKind.CANCELLED,
        "Cancel cooperative": EventKind.CANCELLING,
        "Cancel immediate": EventKind.CANCELLED,
        "Expire": EventKind.LOST,
        "Abandon": EventKind.ABANDONED,
        "Outlive": EventKind.DEAD,
        "Update": EventKind.UPDATED,
        "Retime": EventKind.RETIMED,
    }


def test_a_loss_that_is_not_counted_costs_nothing_and_ends_nothing() -> None:
    job = job_in(State.RUNNING, max_attempts=1)
    assert lifecycle.apply(job, lifecycle.Expire(), NOW).after.state is State.DEAD
    after = lifecycle.apply(job, lifecycle.Expire(counted=False), NOW).after
    assert (after.state, after.losses, after.token) == (State.LOST, job.losses, None)


def test_rescheduling_keeps_the_budget_and_what_failed() -> None:
    job = job_in(State.RETRYING, run_at=NOW + timedelta(hours=1))
    change = lifecycle.apply(job, lifecycle.Reschedule(run_at=NOW), NOW)
    assert (change.after.state, change.after.run_at) == (State.PENDING, NOW)
    assert (change.after.failures, change.after.failure) == (job.failures, job.failure)
    assert (change.event.kind, change.event.run_at) == (EventKind.RESCHEDULED, NOW)


@given(data=st.data())
def test_folding_events_gives_the_row(data: st.DataObject) -> None:
    """Any lawful walk: the events alone rebuild what the lifecycle wrote."""
    draft = job_in(State.PENDING, version=1, updated_at=NOW, created_at=NOW, run_at=NOW)
    job, event = lifecycle.submit(draft, waits=data.draw(st.booleans()))
    events = [event]
    now = NOW
    for _ in range(data.draw(st.integers(0, 12))):
        now += timedelta(seconds=data.draw(st.integers(0, 7200)))
        command = data.draw(st.sampled_from(commands(None)))
        try:
            change = lifecycle.apply(job, command, now)
        except Refusal:
            continue
        job = change.after
        events.append(change.event)
    folded = history.fold(events)
    assert folded == {field: getattr(job, field) for field in folded}
