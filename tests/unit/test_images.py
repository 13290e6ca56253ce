"""Each specification is an image of the one lifecycle.

Every state × every command × every preset: what the lifecycle does, told in the specification's words, is
a transition that the specification allows; and every transition it names is one that the lifecycle makes.
"""

from __future__ import annotations

import itertools
from datetime import timedelta

import msgspec
import pytest

from headrace import lifecycle
from headrace.contracts.presets import PRESETS
from headrace.contracts.vocabulary import VOCABULARIES
from headrace.errors import Refusal
from headrace.lifecycle import VERBS, Verb
from headrace.model import CLAIMABLE, LEASED, Job, State
from headrace.policy import CancelMode, Policy
from tests.unit.samples import NOW, TOKEN, job_in
from tests.unit.test_lifecycle import commands


def pairs(*rows: str) -> set[tuple[str, str]]:
    """ "A -> B C" as {(A, B), (A, C)}."""
    found = set()
    for row in rows:
        source, targets = row.split(" -> ")
        found |= {(source, target) for target in targets.split()}
    return found


class Image(msgspec.Struct, frozen=True):
    """A specification's own transitions, and the commands its callers can give."""

    verbs: frozenset[Verb]
    by_command: set[tuple[str, str]]
    by_time: set[tuple[str, str]] = set()
    """What it calls a transition and we derive from the clock."""


WORKER = frozenset({Verb.CLAIM, Verb.COMPLETE, Verb.FAIL, Verb.EXPIRE})

IMAGES = {
    "backend_api": Image(
        WORKER
        | {
            Verb.STOP,
            Verb.CANCEL,
            Verb.ACKNOWLEDGE_CANCEL,
            Verb.ABANDON,
            Verb.SNOOZE,
            Verb.RELEASE,
        },
        pairs(
            "INITIAL_PENDING -> RUNNING UNSCHEDULED",
            "RUNNING -> COMPLETED FAILED_RETRY STOPPED CANCELLING UNKNOWN_RETRY UNKNOWN_STOPPED",
            "CANCELLING -> COMPLETED STOPPED UNKNOWN_STOPPED",
            "FAILED_RETRY -> RUNNING STOPPED UNKNOWN_STOPPED",
            "UNKNOWN_RETRY -> RUNNING COMPLETED FAILED_RETRY STOPPED UNKNOWN_STOPPED",
            "UNKNOWN_STOPPED -> COMPLETED STOPPED",
        ),
    ),
    "queue_semantics": Image(
        WORKER,
        pairs("Ready -> InFlight", "InFlight -> Succeeded Ready Failed"),
    ),
    "job_model": Image(
        frozenset(Verb) - {Verb.SUBMIT, Verb.RESCHEDULE, Verb.RETIME},
        pairs(
            "PENDING -> SCHEDULED DELAYED FAILED DEAD_LETTER CANCELLED",
            "DELAYED -> CANCELLED DEAD_LETTER",
            "SCHEDULED -> RUNNING CANCELLED DEAD_LETTER",
            # Visibility timeout and release: back in line at once.
            "RUNNING -> COMPLETED FAILED RETRYING DEAD_LETTER CANCELLED SCHEDULED",
            "RETRYING -> DEAD_LETTER CANCELLED",
        ),
        pairs("DELAYED -> SCHEDULED", "RETRYING -> SCHEDULED"),
    ),
    "job_store": Image(
        WORKER | {Verb.CANCEL, Verb.RELEASE, Verb.RESCHEDULE},
        pairs(
            "Queued -> InProgress Canceled Scheduled",
            "Scheduled -> InProgress Canceled Queued",
            "InProgress -> Completed Failed Scheduled Queued Canceled",
        ),
        pairs("Scheduled -> Queued"),
    ),
    "conformance": Image(
        WORKER | {Verb.CANCEL},
        pairs(
            "Enqueued -> Processing Canceled",
            "Retrying -> Processing Canceled",
            "Processing -> Completed Failed Retrying Canceled Enqueued",
        ),
    ),
}


def jobs(policy: Policy, *, dependencies: bool) -> list[Job]:
    """Every state the preset's jobs can be in, due and not, with budget left and on its last."""
    found = []
    for state, late, last in itertools.product(State, (False, True), (False, True)):
        if state is State.BLOCKED and not dependencies:
            continue
        if late and not (state in CLAIMABLE or state is State.BLOCKED):
            continue
        if last and policy.max_attempts is None:
            continue
        if late and state is State.LOST:
            continue  # run_at is what it was when the lost attempt was claimed
        job = job_in(state, max_attempts=None if policy.max_attempts is None else 9)
        if last:
            job = msgspec.structs.replace(job, max_attempts=job.failures + job.losses + 1)
        if late:
            job = msgspec.structs.replace(job, run_at=NOW + timedelta(hours=1))
        found.append(job)
    return found


def seen_transitions(name: str) -> set[tuple[str, str]]:
    policy, image, word = PRESETS[name], IMAGES[name], VOCABULARIES[name]
    seen = set()
    for job in jobs(policy, dependencies=name == "job_model"):
        token = TOKEN if policy.fenced else None
        for command in commands(token):
            if VERBS[type(command)] not in image.verbs:
                continue
            if (
                isinstance(command, lifecycle.Cancel)
                and command.mode is not policy.cancel
                and not (name == "job_model" and command.mode is CancelMode.IMMEDIATE)
            ):
                continue
            try:
                after = lifecycle.apply(job, command, NOW).after
            except Refusal:
                continue
            before_word = word(job.state, job.run_at <= NOW, job.attempt)
            after_word = word(after.state, after.run_at <= NOW, after.attempt)
            if before_word != after_word:
                seen.add((before_word, after_word))
    return seen


@pytest.mark.parametrize("name", IMAGES)
def test_what_the_lifecycle_does_is_what_the_specification_allows(name: str) -> None:
    image = IMAGES[name]
    assert seen_transitions(name) <= image.by_command


@pytest.mark.parametrize("name", IMAGES)
def test_what_the_specification_names_is_what_the_lifecycle_does(name: str) -> None:
    image = IMAGES[name]
    assert seen_transitions(name) >= image.by_command


@pytest.mark.parametrize("name", [name for name, image in IMAGES.items() if image.by_time])
def test_what_time_alone_does(name: str) -> None:
    word = VOCABULARIES[name]
    moved = {
        (word(state, False, attempt), word(state, True, attempt))
        for state, attempt in ((State.PENDING, 0), (State.RETRYING, 1))
    }
    assert {pair for pair in moved if pair[0] != pair[1]} == IMAGES[name].by_time


@pytest.mark.parametrize("name", VOCABULARIES)
def test_every_state_has_a_word(name: str) -> None:
    for state, due, attempt in itertools.product(State, (False, True), (0, 1)):
        assert VOCABULARIES[name](state, due, attempt)
    leased = {VOCABULARIES[name](state, True, 1) for state in LEASED}
    waiting = {VOCABULARIES[name](state, True, 1) for state in CLAIMABLE}
    assert not leased & waiting
