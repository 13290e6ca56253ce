"""The three histories that are held against each other: clients, the event log, the final rows."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from headrace.model import Edge, Event, Job
from headrace.stores.base import KeyScope


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """One job that a client asked for, and what it heard."""

    job_id: str | None = None
    """As the client named it. None: it left that to the store."""
    key: KeyScope | None = None
    answer: str | None = None
    """The id of the job it was told of. None: it heard nothing, so the job may be stored or not."""


class Said(enum.StrEnum):
    """How a handler ended, by its own word."""

    COMPLETED = "completed"
    FAILED = "failed"
    SNOOZED = "snoozed"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a handler. Times are a clock that all clients share."""

    job_id: str
    token: str
    attempt: int
    process: int
    began: float
    ended: float | None = None
    """None: it was cut short."""
    said: Said | None = None


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """What the clients wrote down: those that submit, and the handlers."""

    submissions: Sequence[Submission] = ()
    runs: Sequence[Run] = ()


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What one reader of the log saw, page by page, from a cursor on."""

    after: str
    seqs: Sequence[int]


class Breach(msgspec.Struct, frozen=True):
    """Something in a history that contradicts an invariant."""

    job_id: str | None
    what: str


class History(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All that is known of a run of the system, once it has come to rest."""

    client: Client
    events: Sequence[Event]
    """The whole log, in its own order."""
    jobs: Mapping[str, Job]
    edges: Sequence[Edge] = ()
    readings: Sequence[Reading] = ()
    """Other readings of the same log: while it was written, and from cursors in the middle."""
    fenced: bool = True
    """The policies fence: what the table allows only without a token is a breach."""
    keys_released: bool = True
    """A key is free again once its job has ended. False: it stays that job's."""
    clock_seconds: float = 0.0
    """How old a clock reading may be when what it is stamped on is written (it may wait for its turn)."""

    @cached_property
    def of_job(self) -> Mapping[str, Sequence[tuple[int, Event]]]:
        """The events of each job, with their places in the log."""
        found: dict[str, list[tuple[int, Event]]] = {}
        for place, event in enumerate(self.events):
            found.setdefault(event.job_id, []).append((place, event))
        return found

    @cached_property
    def runs_of(self) -> Mapping[tuple[str, int], Sequence[Run]]:
        """The runs of each attempt of each job."""
        found: dict[tuple[str, int], list[Run]] = {}
        for run in self.client.runs:
            found.setdefault((run.job_id, run.attempt), []).append(run)
        return found
