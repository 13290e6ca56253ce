"""Read, apply the pure rule, commit, and on a conflict read again: the one way a job is changed.

What ends jobs may release or take down others: `ripple` follows that through. Each step of it is
atomic and each can be repeated, so a crash between two steps leaves work for the sweep, never a stuck job.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec

from headrace import error_text, graph, lifecycle
from headrace.errors import (
    Contention,
    HeadraceError,
    InvalidInput,
    JobNotFound,
    Refusal,
    StoreError,
)
from headrace.lifecycle import Command
from headrace.manager.context import Context
from headrace.manager.records import CONFLICTS_MAX
from headrace.model import LEASED, Category, Change, Edge, Failure, Job, State
from headrace.stores.base import Commit

logger = logging.getLogger("headrace.manager")


NO_CHANGES: Mapping[int, Change] = {}


class Changed(msgspec.Struct, frozen=True):
    """The jobs as they are after the call, and the capacity it freed, by worker."""

    jobs: tuple[Job, ...]
    freed: Mapping[str, int]

    @property
    def job(self) -> Job:
        """The only job, for calls that change one."""
        (only,) = self.jobs
        return only


class Settled(msgspec.Struct, frozen=True):
    """One answer per order, in order: the job after, or the error that left it as it was."""

    outcomes: tuple[Job | HeadraceError, ...]
    freed: Mapping[str, int]


class Order(msgspec.Struct, frozen=True):
    """A command for one job. `decide` sees the job as read: what to do may depend on it."""

    job_id: str
    decide: Callable[[Job], Command]
    known: Job | None = None
    """The job as the caller last saw it: saves reading it if it has not changed."""


def freed_by(changes: Sequence[Change]) -> dict[str, int]:
    """Workers that lost a job to hold: those whose job left running or cancelling."""
    return dict(
        Counter(
            [
                change.before.assignee
                for change in changes
                if change.before.state in LEASED
                and change.after.state not in LEASED
                and change.before.assignee is not None
            ]
        )
    )


async def change_each(
    context: Context, orders: Sequence[Order], ready: Mapping[int, Change] = NO_CHANGES
) -> Settled:
    """Carry out each order by itself. Those that are refused leave the others alone.

    `ready` says, by the place of an order, what it comes to if its job is still as `known`: whoever calls
    has worked it out already.
    """
    outcomes: dict[int, Job | HeadraceError] = {}
    done: list[Change] = []
    waiting = {index: _trusted(context, order) for index, order in enumerate(orders)}
    rounds_left = CONFLICTS_MAX
    while waiting and rounds_left:
        rounds_left -= 1
        answered = len(outcomes)
        turn = _first_of_each_job(waiting)
        unread = [order.job_id for order in turn.values() if order.known is None]
        fresh = await context.read(unread)
        changes: dict[int, Change] = {}
        now = context.now()  # one step, one time: it is also cheaper to write
        for index, order in turn.items():
            if order.known is not None and index in ready:
                changes[index] = ready[index]
                continue
            job = order.known or fresh.get(order.job_id)
            try:
                changes[index] = _change(order, job, now)
            except Refusal as refusal:
                if order.known is None:
                    outcomes[index] = refusal
                else:
                    waiting[index] = _forget(order)
            except HeadraceError as error:
                outcomes[index] = error
        applied = await _commit(context, list(changes.values()))
        for (index, change), written in zip(changes.items(), applied, strict=True):
            if written:
                outcomes[index] = change.after
                done.append(change)
            else:
                waiting[index] = _forget(waiting[index])
        waiting = {index: order for index, order in waiting.items() if index not in outcomes}
        if len(outcomes) > answered:
            rounds_left = CONFLICTS_MAX  # only rounds without any answer count
    for index, order in waiting.items():
        outcomes[index] = _contention(order.job_id)
    return Settled(tuple(outcomes[index] for index in range(len(orders))), freed_by(done))


async def change_one(context: Context, order: Order) -> Changed:
    """Carry out one order, or raise what refused it."""
    settled = await change_each(context, [order])
    (outcome,) = settled.outcomes
    if isinstance(outcome, HeadraceError):
        raise outcome
    return Changed((outcome,), settled.freed)


async def change_together(
    context: Context,
    jobs: Sequence[Job],
    decide: Callable[[Job], Command],
    *,
    leases_as_read: bool = False,
) -> Changed | None:
    """Change all of these jobs in one atomic step. None: one had moved on; read again."""
    changes = [lifecycle.apply(job, decide(job), context.now()) for job in jobs]
    committed = await context.store.commit(
        Commit(changes=changes, together=True, leases_as_read=leases_as_read)
    )
    if not all(committed.applied):
        return None
    await ripple_or_leave(context, committed.touched)
    return Changed(tuple(change.after for change in changes), freed_by(changes))


async def ripple_or_leave(context: Context, touched: Sequence[Edge]) -> None:
    """Judge the children now if the store lets us. What was committed stands either way.

    An error here must not look like a failure of the change that came before it: what is left
    unjudged is marked as such in the store, and the sweep takes it up.
    """
    try:
        await ripple(context, touched)
    except StoreError as error:
        logger.warning("children of %d edges are left to the sweep: %s", len(touched), error)


async def ripple(context: Context, touched: Sequence[Edge]) -> int:
    """Judge every child of these edges, then the children of those that fell. How many changed.

    A child that has moved on meanwhile is looked at again: it may be blocked still, with other metadata.
    What is judged cannot be overtaken: whoever adds an edge to a child holds the lease of one of its open
    parents, so where all have ended no edge can come.
    """
    changed = 0
    rounds_left = CONFLICTS_MAX
    while touched and rounds_left:
        children = list(dict.fromkeys(edge.child_id for edge in touched))
        joins = await context.store.joins(children)
        jobs = await context.store.get(children)  # a child is of its parent's tenant
        changes = [
            lifecycle.apply(job, command, context.now())
            for job in jobs.values()
            if job.state is State.BLOCKED
            and (command := _verdict(graph.seen_by(job.tags, joins[job.id]))) is not None
        ]
        seen = [(edge.parent_id, edge.child_id) for edge in touched]
        committed = await context.store.commit(Commit(changes=changes, seen=seen))
        changed += sum(committed.applied)
        missed = {
            change.before.id
            for change, written in zip(changes, committed.applied, strict=True)
            if not written
        }
        rounds_left -= bool(missed)
        touched = [*committed.touched, *(edge for edge in touched if edge.child_id in missed)]
    return changed


def _change(order: Order, job: Job | None, now: datetime) -> Change:
    """Raises what refuses the order: also one that nobody can carry out is only refused."""
    if job is None:
        raise JobNotFound(order.job_id)
    try:
        return lifecycle.apply(job, _decided(order, job), now)
    except HeadraceError:
        raise
    except Exception as error:
        logger.exception("an order for job %s cannot be carried out", order.job_id)
        raise unreadable(error) from error


async def _commit(context: Context, changes: Sequence[Change]) -> Sequence[bool]:
    if not changes:
        return ()
    committed = await context.store.commit(Commit(changes=changes))
    await ripple_or_leave(context, committed.touched)
    return committed.applied


def _verdict(join: graph.Join) -> Command | None:
    match graph.judge(join):
        case graph.Wait():
            return None
        case graph.Go():
            return lifecycle.Unblock()
        case graph.Fall(target):
            category = Category.CANCELLED if target is State.CANCELLED else Category.PERMANENT
            failure = Failure(f"a job it depends on is {join.needs_broken}", category, "dependency")
            return lifecycle.Propagate(target=target, failure=failure)


def _decided(order: Order, job: Job) -> Command:
    command = order.decide(job)
    if isinstance(command, lifecycle.Update):
        raise InvalidInput("an update has a verb of its own: call update; nothing was changed")
    return command


def _first_of_each_job(waiting: Mapping[int, Order]) -> dict[int, Order]:
    """A commit takes one change per job: a second order for the same job waits for the next turn."""
    turn: dict[str, int] = {}
    for index, order in waiting.items():
        turn.setdefault(order.job_id, index)
    if len(turn) == len(waiting):
        return dict(waiting)
    return {index: waiting[index] for index in turn.values()}


def _trusted(context: Context, order: Order) -> Order:
    """What the caller knows counts only if it is this job and the caller may see it."""
    known = order.known
    return (
        order
        if known is None or (known.id == order.job_id and context.sees(known))
        else _forget(order)
    )


def _forget(order: Order) -> Order:
    return Order(order.job_id, order.decide)


def unreadable(error: Exception) -> InvalidInput:
    """The answer to one order that nobody can carry out: the others are none the worse."""
    return InvalidInput(
        f"this outcome cannot be recorded ({error_text.told(error)}); its job was left as it is"
    )


def _contention(job_id: str) -> Contention:
    return Contention(
        f"job {job_id} kept changing during {CONFLICTS_MAX} tries; nothing was changed"
    )
