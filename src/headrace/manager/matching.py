"""Which jobs a bulk command is about when nobody names them: by state, queue, error, age."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from headrace import history, validation
from headrace.error_groups import collapsed, fingerprint
from headrace.errors import EmptySelection, InvalidInput
from headrace.manager.sealing import hides_message
from headrace.model import TERMINAL, Job, State
from headrace.stores.base import Query


class Matching(msgspec.Struct, frozen=True, kw_only=True):
    """Every filter must match; one at least must be given: never "everything".

    The time of a job is that of its end, or of its submission where it has not ended.
    """

    queues: Iterable[str] | None = None
    types: Iterable[str] | None = None
    states: Iterable[State | str] | None = None
    tags: Iterable[str] = ()
    codes: Iterable[str] | None = None
    """The code of its last error is one of these."""
    error: str | None = None
    """The message of its last error contains this, in whatever case."""
    error_group: str | None = None
    """Its last error belongs to the group with this fingerprint, as `error_groups` tells it."""
    since: datetime | None = None
    before: datetime | None = None


class Criteria(msgspec.Struct, frozen=True, kw_only=True):
    """A checked `Matching`, for jobs in states that the command can do something with."""

    query: Query
    """What the store can tell."""
    codes: frozenset[str] | None
    error: str | None
    error_group: str | None
    since: datetime | None
    before: datetime | None

    def takes(self, job: Job) -> bool:
        """Whether a job that the query found is meant."""
        at = job.finalized_at or job.created_at
        if self.since is not None and at < self.since:
            return False
        if self.before is not None and at >= self.before:
            return False
        failure = job.failure
        if self.codes is not None and (failure is None or failure.code not in self.codes):
            return False
        if self.error_group is not None and fingerprint_of(job) != self.error_group:
            return False
        return self.error is None or (
            failure is not None and (hides_message(job) or self.error in failure.message.casefold())
        )

    def means(self, job: Job) -> bool:
        """Whether a job that the query found once is meant still: it may have been changed since."""
        return (
            job.state in (self.query.states or ())
            and set(self.query.tags) <= set(job.tags)
            and self.takes(job)
        )

    def is_withheld(self, job: Job) -> bool:
        """Its message decides, and cannot be read."""
        return self.error is not None and hides_message(job)


def fingerprint_of(job: Job) -> str | None:
    """That of the group of its last error, as the event log tells of it. None: there is no error."""
    failure = job.failure
    if failure is None:
        return None
    sealed = job.seals is not None
    message = None if sealed else collapsed(failure.message[: history.MESSAGE_CHARS_MAX])
    return fingerprint(job.type, failure.category.value, failure.code, message)


def check(where: object, possible: frozenset[State], doing: str) -> Criteria:
    """Raise what is wrong with it. `doing`: what cannot be done to jobs in other states."""
    if not isinstance(where, Matching):
        raise InvalidInput(f"{where!r} is not a Matching; {validation.UNCHANGED}")
    tags = validation.check_tags(where.tags)
    given = (
        where.queues,
        where.types,
        where.states,
        where.codes,
        where.error,
        where.error_group,
        where.since,
        where.before,
    )
    if all(one is None for one in given) and not tags:
        raise EmptySelection(
            "name a state, queue, type, tag, error or time: none would mean every job; "
            f"{validation.UNCHANGED}"
        )
    states = possible if where.states is None else _states(where.states, possible, doing)
    before = None if where.before is None else validation.check_time(where.before, "before")
    since = None if where.since is None else validation.check_time(where.since, "since")
    ended = states <= TERMINAL
    return Criteria(
        query=Query(
            queues=validation.check_names(where.queues, "queue"),
            types=validation.check_names(where.types, "type"),
            states=tuple(sorted(states)),
            tags=tags,
            created_from=None if ended else since,
            created_before=None if ended else before,
            finalized_before=before if ended else None,
        ),
        codes=None
        if where.codes is None
        else frozenset(validation.check_names(where.codes, "code") or ()),
        error=None
        if where.error is None
        else validation.check_message(where.error, "the error").casefold(),
        error_group=None
        if where.error_group is None
        else validation.check_name(where.error_group, "error group"),
        since=since,
        before=before,
    )


def _states(
    given: Iterable[State | str], possible: frozenset[State], doing: str
) -> frozenset[State]:
    if isinstance(given, str):
        raise InvalidInput(f"states must be a list, not {given!r}; {validation.UNCHANGED}")
    states = frozenset(validation.check_word(one, State) for one in given)
    wrong = sorted(states - possible)
    if wrong:
        raise InvalidInput(
            f"jobs that are {', '.join(wrong)} cannot be {doing}, only those that are "
            f"{', '.join(state.value for state in State if state in possible)}; {validation.UNCHANGED}"
        )
    return states
