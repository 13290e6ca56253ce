"""What a store must do: about thirty small verbs, each atomic, none of them policy.

A store keeps rows, a dependency graph, idempotency keys and an event log. It knows no retry rule, no
backoff and no cancellation rule: it is handed finished `Change`s and writes them if the rows are still
as they were read. The single transition it makes by itself is the claim, which must pick and lease in
one step; what it writes there must equal `lifecycle.apply(job, Claim(...), now)`, and the conformance
kit checks that it does.

Time always comes in as an argument. Every verb is safe to call from many tasks at once. A verb that
raises has changed nothing. Only `StoreError` and its children are raised.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

import msgspec

from headrace.graph import Join
from headrace.model import Change, Edge, Event, Job, State
from headrace.redaction import Redacted

FIND_LIMIT_MAX = 10_000


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a store can do that others cannot. Tests skip by capability, never by store name."""

    name: str
    durable: bool
    """What was acknowledged survives the death of the process."""
    shared: bool
    """Several processes can use it at once."""
    loads_in_bulk: bool = False
    """It has a loader that takes rows of Arrow, past the manager's drafts of single jobs."""
    looks_after_itself: bool = False
    """Whoever serves it runs its maintenance: its users need not, and may not."""


# --- inserting -----------------------------------------------------------------------------------


class KeyScope(msgspec.Struct, frozen=True):
    """Within this an idempotency key is unique."""

    tenant: str
    queue: str
    type: str
    key: str


class KeyHold(msgspec.Struct, frozen=True):
    """A key to be held for a job that is being inserted."""

    scope: KeyScope
    job_id: str
    expires_at: datetime | None
    """None: without end."""
    released_when_terminal: bool


class Fence(Redacted, frozen=True):
    """A lease that must hold at the moment of the write."""

    job_id: str
    token: str


class Kin(msgspec.Struct, frozen=True, kw_only=True):
    """The graph around a stored job, as a check has relied on it. None: it has not looked."""

    version: int | None = None
    """The job is stored, and at this version."""
    parents_max: int | None = None
    """No more edges than this lead into it."""
    joins: Sequence[str] | None = None
    """No other jobs than these wait for it by FAN_IN."""
    spawned: Sequence[str] | None = None
    """It has spawned no other jobs than these."""


class Insertion(msgspec.Struct, frozen=True, kw_only=True):
    """New jobs and all that must be stored, or not stored, with them."""

    jobs: Sequence[Job]
    """In order; the store gives `seq` in this order."""
    events: Sequence[Event]
    """One per job, in the same order."""
    now: datetime
    edges: Sequence[Edge] = ()
    """The child may be one of `jobs`, or (when a running job spawns) one that is stored and blocked."""
    parents: Mapping[str, State | None] = {}
    """Every stored parent named by `edges`: its outcome as it was read, None while it had not ended.
    The insertion only holds if that is still so."""
    kin: Mapping[str, Kin] = {}
    """By the id of a stored job: what the edges and the depths of these jobs were computed from. The
    insertion only holds if that is still so, and of two insertions at once whose edges or spawned jobs
    concern each other's kin the later one sees the earlier one."""
    keys: Sequence[KeyHold] = ()
    fence: Fence | None = None
    """The running job that spawns these."""


class Inserted(msgspec.Struct, frozen=True):
    """All stored. The jobs, in order, with their `seq`."""

    jobs: Sequence[Job]


class Clash(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing was stored, because the world is not as the insertion took it to be."""

    ids: Sequence[str] = ()
    """These ids are stored already (in whatever tenant)."""
    keys: Sequence[KeyScope] = ()
    """These keys are held already."""
    parents: Sequence[str] = ()
    """These parents are gone, or have ended since they were read."""
    kin: Sequence[str] = ()
    """Around these jobs the graph is not as it was read."""
    fence: bool = False
    """The fence does not hold any more."""


# --- claiming ------------------------------------------------------------------------------------


class ClaimRequest(Redacted, frozen=True, kw_only=True):
    """Which jobs a worker will take. Every filter must match; None, and no tags, do not filter.

    An empty list of queues or types matches nothing.
    """

    worker: str
    now: datetime
    limit: int
    nonce: str
    tenant: str | None = None
    queues: Sequence[str] | None = None
    types: Sequence[str] | None = None
    tags: Sequence[str] = ()
    """The job has all of these."""
    lease_seconds: float | None = None
    due_by: datetime | None = None
    """A job counts as due if its run_at is not after this. None: not after `now`."""

    @property
    def horizon(self) -> datetime:
        """Up to when a job counts as due."""
        return self.now if self.due_by is None else self.due_by


class Record(Redacted, frozen=True, kw_only=True):
    """A small named document: a schedule, a queue's gate. What is in it is not the store's business."""

    kind: str
    name: str
    version: int = 0
    """As read. 0: there is none yet."""
    body_json: bytes = b"null"


GATE = "gate"
"""The kind of record that stands before a queue of the same name: plain claims pass that queue over."""


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The front of one lane that has due jobs."""

    tenant: str
    queue: str
    type: str
    priority: int
    limit_key: str | None
    run_at: datetime
    """Of its first job."""
    jobs: int
    """How many are due, counted up to the request's limit."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs to take from one lane."""

    tenant: str
    queue: str
    type: str
    priority: int
    limit_key: str | None
    jobs: int


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """How many leases hold now, of one tenant, queue and limit key."""

    tenant: str
    queue: str
    limit_key: str | None
    jobs: int


# --- committing ----------------------------------------------------------------------------------


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """Changes to be written if their jobs are still as they were read."""

    changes: Sequence[Change]
    """At most one per job."""
    seen: Sequence[tuple[str, str]] = ()
    """(parent_id, child_id) of edges whose outcome the child has been judged by. Where the child's own change
    is not written it has not been judged: those edges stay unseen."""
    together: bool = False
    """All or nothing; otherwise each change stands or falls alone."""
    leases_as_read: bool = False
    """Compare `lease_until` too: whoever declares a lease lapsed must not undo a heartbeat."""

    def seen_given(self, applied: Sequence[bool]) -> Sequence[tuple[str, str]]:
        """What has been seen, when these changes (one answer each, in order) were written."""
        if all(applied):
            return self.seen
        left = {
            change.before.id
            for change, written in zip(self.changes, applied, strict=False)
            if not written
        }
        return [pair for pair in self.seen if pair[1] not in left]


class Committed(msgspec.Struct, frozen=True):
    applied: Sequence[bool]
    """One per change: written, or left alone because the job had moved on (or is gone)."""
    touched: Sequence[Edge] = ()
    """The edges to which a written change gave an outcome: their children are to be judged."""


class Extended(msgspec.Struct, frozen=True):
    """A lease that was extended. `state` tells the worker of a cancellation."""

    job_id: str
    state: State
    lease_until: datetime | None


class Note(Redacted, frozen=True, kw_only=True):
    """What a worker says of a job it holds. None leaves what is there."""

    progress: float | None = None
    progress_note: str | None = None
    checkpoint_json: bytes | None = None
    log_json: bytes | None = None


class Rewrite(Redacted, frozen=True, kw_only=True):
    """The same contents in another form (under another key). None leaves what is there."""

    job_id: str
    version: int
    """As read."""
    payload_json: bytes | None = None
    result_json: bytes | None = None
    checkpoint_json: bytes | None = None
    log_json: bytes | None = None
    failure_message: str | None = None


# --- reading -------------------------------------------------------------------------------------


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs to find. Every filter must match; None, and no tags, do not filter.

    An empty list of ids, queues, types or states matches nothing.
    """

    tenant: str | None = None
    ids: Sequence[str] | None = None
    queues: Sequence[str] | None = None
    types: Sequence[str] | None = None
    states: Sequence[State] | None = None
    tags: Sequence[str] = ()
    assignee: str | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None
    finalized_before: datetime | None = None
    newest_first: bool = False
    after_seq: int | None = None
    """The last seq of the page before (in the query's own direction)."""
    limit: int = 100


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of one tenant and queue are in one state."""

    tenant: str
    queue: str
    state: State
    jobs: int
    delayed: int = 0
    """Those of the claimable ones that are not due yet."""
    failures: int = 0
    """The sum of their `failures`."""


class Backlog(msgspec.Struct, frozen=True):
    """What has not started yet: blocked, pending, retrying and lost jobs, due or not."""

    jobs: int
    payload_bytes: int


class Pause(msgspec.Struct, frozen=True):
    """Nobody claims from this queue. `tenant` None: for every tenant."""

    queue: str
    tenant: str | None
    since: datetime


class WorkerProcess(msgspec.Struct, frozen=True, kw_only=True):
    """The process that a worker runs in."""

    host: str
    pid: int
    version: str
    """Of Headrace."""
    started_at: datetime
    draining: bool = False
    """It claims no more, and ends when the handlers that it runs have ended."""


class WorkerSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The last time a worker asked for jobs, or said that it has no room for more, and for which."""

    worker: str
    seen_at: datetime
    tenant: str | None = None
    queues: Sequence[str] | None = None
    types: Sequence[str] | None = None
    tags: Sequence[str] = ()
    slots: int | None = None
    """How many handlers it runs at once; None: it did not say."""
    busy: int | None = None
    """How many it ran then; None: it did not say."""
    process: WorkerProcess | None = None
    """None: it did not say."""


class Health(enum.StrEnum):
    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Finding(msgspec.Struct, frozen=True):
    """One line of a diagnosis."""

    health: Health
    what: str
    value: str
    advice: str | None = None
    """What to do about it; None when all is well."""


class EventQuery(msgspec.Struct, frozen=True, kw_only=True):
    after: str = ""
    """A cursor; "" is the beginning of what the log still holds."""
    tenant: str | None = None
    job_id: str | None = None
    """Only this job's: what is left of them, also after a cursor from before a trim. A gap shows in
    their versions."""
    limit: int = 1000


@runtime_checkable
class JoinsTransactions(Protocol):
    """A store whose jobs can be submitted inside a transaction of the caller's own."""

    def on(self, connection: object) -> JobStore:
        """This store inside that transaction: what is inserted commits or vanishes with it."""
        ...


class JobStore(Protocol):
    """The verbs. `headrace.stores.memory` is the executable definition."""

    @property
    def capabilities(self) -> Capabilities: ...

    async def close(self) -> None:
        """Give everything back. Afterwards every verb raises StoreClosed. Closing twice is fine."""
        ...

    async def now(self) -> datetime:
        """The store's own clock."""
        ...

    async def diagnose(self) -> Sequence[Finding]:
        """What this store knows of its own health: versions, durability settings, bloat."""
        ...

    # writing

    async def insert(self, insertion: Insertion) -> Inserted | Clash:
        """Store all of it, events included, or none of it."""
        ...

    async def claim(self, request: ClaimRequest) -> Sequence[Job]:
        """Lease up to `limit` due jobs, in the order priority, run_at, seq, events included.

        Paused queues are passed over, and so are queues with a gate. What it costs does not grow with
        the number of jobs waiting, due or not.
        """
        ...

    async def heads(self, request: ClaimRequest) -> Sequence[Head]:
        """The lanes from which a claim could take now, gates or not, in any order. Takes nothing.

        Paused queues are left out. Only jobs that match the request are counted.
        """
        ...

    async def claim_shares(
        self, request: ClaimRequest, shares: Sequence[Share], gates: Sequence[Record]
    ) -> Sequence[Job] | None:
        """Claim as `claim` does, but only from these lanes, up to so many from each, gates or not.

        The jobs in the order of the shares, and in each lane's own order within one. In the same step
        each gate, given as it was read but with a new body, is stored with the next version, as
        `put_record` does, even if no job is taken. None: a gate had moved on, or was gone; nothing was
        claimed and nothing written.
        """
        ...

    async def next_due(self, request: ClaimRequest) -> datetime | None:
        """When the next waiting job that matches is due: the first run_at after the request's `horizon`.

        Gates or not; paused queues are left out. Never later than that, but it may be earlier: of a job
        that lacks some of the tags. What is due already does not count. None: none waits for its time,
        or too much had to be looked at. Costs what a claim costs.
        """
        ...

    async def commit(self, commit: Commit) -> Committed:
        """Write each change (row, event) whose job is still as `before` has it.

        That is: the stored row has the same id, tenant, queue, type, priority, limit key, version, state,
        token, assignee, attempt, failures and losses. A version alone proves nothing: a caller who has made
        `before` up, or has it from another tenant, is told that the job has moved on.

        Heartbeats and notes do not count as versions, so a row may be newer than `before` in those
        fields: progress, progress_note and checkpoint are left as stored, and so is lease_until
        when the job is leased before and after (log_json counts among the notes).

        In the same step, for a change into a terminal state: every open edge from that job gets its
        outcome, and a key that is `released_when_terminal` is given up.
        """
        ...

    async def extend(
        self, leases: Mapping[Fence, float | None], now: datetime
    ) -> Sequence[Extended]:
        """Heartbeat: each lease that holds now lasts `seconds` from now (None: without end).

        Leases that do not hold are left alone and left out of the answer. No event, no new version.
        """
        ...

    async def annotate(self, fence: Fence, note: Note, now: datetime) -> bool:
        """Write the note if the lease holds now. No event, no new version."""
        ...

    async def rewrite(self, rewrites: Sequence[Rewrite]) -> Sequence[bool]:
        """Replace what is given, job by job, if it is still at that version and not leased.

        No event, no new version. One answer per rewrite. A change computed before it leaves a rewritten
        payload as stored. A failure's message is replaced only where there is a failure.
        """
        ...

    async def update(self, changes: Sequence[Change]) -> Sequence[bool]:
        """Write what an update says of each job that is still as `before` has it; at most one per job.

        That is: the stored row has the same id, tenant, queue, type, priority, limit key, version and state.
        Written are `priority` (the job moves to the lane of that), `tags`, `correlation_id`,
        `callback_url`, `depth`, `version` and the event. Everything else stays as stored. Each change
        stands or falls alone; one answer each. The job has not ended.
        """
        ...

    async def delete(self, jobs: Mapping[str, int]) -> bool:
        """Delete jobs (id to version), with their keys and the edges into them.

        All or, when one has moved on, none. Events stay. Ids that are gone already do not count
        against it.
        """
        ...

    # reading jobs

    async def get(self, ids: Sequence[str]) -> Mapping[str, Job]:
        """Those that exist, by id."""
        ...

    async def find(self, query: Query) -> Sequence[Job]:
        """Up to `limit` jobs in order of seq."""
        ...

    async def lapsed(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        """Leased jobs whose lease_until is not after `now`, the longest lapsed first."""
        ...

    async def outlived(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        """Jobs not terminal whose expires_at is not after `now`, the oldest first."""
        ...

    async def keyed(self, scopes: Sequence[KeyScope], now: datetime) -> Mapping[KeyScope, str]:
        """The ids of the jobs that hold these keys."""
        ...

    async def count(
        self,
        now: datetime,
        *,
        tenant: str | None = None,
        queues: Sequence[str] | None = None,
        tags: Sequence[str] = (),
    ) -> Sequence[Tally]:
        """Tallies of the jobs that match, in order of tenant, queue, state; none that are zero."""
        ...

    async def held(self, now: datetime, queues: Sequence[str]) -> Sequence[Held]:
        """The leases on these queues that hold at `now`, in any order; none that are zero.

        Derived from the jobs themselves, so a crash leaks nothing. Costs as much as there are leases.
        """
        ...

    async def backlog(self, *, tenant: str | None = None, queue: str | None = None) -> Backlog:
        """How much waits to be started. None does not filter. May cost as much as there is."""
        ...

    # dependencies

    async def edges(
        self, *, parent_id: str | None = None, child_id: str | None = None
    ) -> Sequence[Edge]:
        """All edges from a parent or into a child, in the order they were stored."""
        ...

    async def joins(self, child_ids: Sequence[str]) -> Mapping[str, Join]:
        """How far each child's parents are: `graph.join_of` of its edges.

        At a cost that does not grow with how many there are.
        """
        ...

    async def spawned(self, parent_id: str) -> Sequence[Job]:
        """The jobs that a running job has spawned (their `parent_id`), in order of seq."""
        ...

    async def unseen(self, limit: int) -> Sequence[Edge]:
        """Edges with an outcome that is not yet seen, in any order: what a crash left for the sweep."""
        ...

    # queues and workers

    async def pause(self, pause: Pause) -> None: ...

    async def resume(self, queue: str, tenant: str | None) -> bool:
        """True if it was paused for that tenant (None: for all)."""
        ...

    async def pauses(self) -> Sequence[Pause]: ...

    async def announce(self, worker: WorkerSeen) -> None:
        """Remember what the worker just said: the whole of it, and nothing it said before."""
        ...

    async def workers(self, since: datetime) -> Sequence[WorkerSeen]:
        """Workers that were heard of at or after `since`, in order of name."""
        ...

    # records

    async def records(self, kind: str, names: Sequence[str] | None = None) -> Sequence[Record]:
        """Those of a kind, all or the named ones, each once, in order of name (by code point)."""
        ...

    async def put_record(self, record: Record) -> bool:
        """Store it with the next version if it is still at the version it was read at (0: not there).

        A name that was deleted starts again at 1.
        """
        ...

    async def delete_record(self, record: Record) -> bool:
        """Delete it if it is still at that version."""
        ...

    # events

    async def events(self, query: EventQuery) -> Sequence[Event]:
        """Up to `limit` events after the cursor, in log order, each with its seq and cursor.

        Never with a gap: where events after the cursor have been trimmed, it raises LogTrimmed. (Not for
        the cursor "", and not for the events of one job.)
        """
        ...

    async def tail(self) -> str:
        """The cursor of the log's present end: of the last event, also when that has been trimmed."""
        ...

    async def trim(self, upto: Sequence[str], before: datetime, limit: int) -> int:
        """Delete events from the front of the log; how many went.

        In log order, up to the first that lies after any of the cursors `upto`, or is not from before
        `before`, or comes after `limit` others: what is left is the log without its beginning. Events
        that may not be read yet stay, whatever the cursors say. The jobs themselves are not touched.
        """
        ...

    async def wait(self, after: str, timeout_seconds: float) -> None:
        """Return as soon as the log may have grown past the cursor, or after the timeout.

        A hint, never the truth: it may return early and, across processes, a little late.
        """
        ...
