"""Cancelling jobs: by id, by tag, or both, in one atomic step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from headrace import lifecycle
from headrace.errors import Refusal
from headrace.manager.changes import change_together, freed_by
from headrace.manager.context import Context
from headrace.manager.records import Again, retried
from headrace.manager.selection import Selection, select
from headrace.model import Category, Change, Failure, Job, State
from headrace.policy import CancelMode


class Cancelled(msgspec.Struct, frozen=True, kw_only=True):
    """What a cancellation did, or (dry run) would do, to each job that was meant."""

    jobs: tuple[Job, ...]
    """Changed: cancelled now, or cancelling until their worker answers."""
    already: tuple[Job, ...]
    """Cancelling before; left as they were."""
    refused: tuple[Job, ...]
    """Running, and the mode only takes jobs that wait."""
    ended: tuple[Job, ...]
    """Ended before; left as they were."""
    not_found: tuple[str, ...]
    freed: Mapping[str, int]


async def cancel(
    context: Context,
    chosen: Selection,
    *,
    mode: CancelMode | None,
    reason: str | None,
    dry_run: bool,
) -> Cancelled:
    """All that can be cancelled is, in one step. `mode` None: as each queue's policy says."""
    failure = Failure(reason or "cancelled", Category.CANCELLED)

    def command(job: Job) -> lifecycle.Cancel:
        return lifecycle.Cancel(mode=mode or context.policy(job.queue).cancel, failure=failure)

    async def once() -> Cancelled:
        selected = await select(context, chosen)
        report = _sort(context, selected.jobs, selected.not_found, command)
        if dry_run or not report.jobs:
            return report
        willing = {job.id for job in report.jobs}
        changed = await change_together(
            context, [job for job in selected.jobs if job.id in willing], command
        )
        if changed is None:
            raise Again
        return msgspec.structs.replace(report, jobs=changed.jobs, freed=changed.freed)

    return await retried(
        once, "the jobs kept changing during the cancellation; nothing was cancelled"
    )


def _sort(
    context: Context,
    jobs: Sequence[Job],
    not_found: tuple[str, ...],
    command: Callable[[Job], lifecycle.Cancel],
) -> Cancelled:
    """What the lifecycle says to each, without writing anything."""
    changes: list[Change] = []
    already: list[Job] = []
    refused: list[Job] = []
    ended: list[Job] = []
    for job in jobs:
        try:
            changes.append(lifecycle.apply(job, command(job), context.now()))
        except Refusal:
            if job.is_terminal:
                ended.append(job)
            elif job.state is State.CANCELLING:
                already.append(job)
            else:
                refused.append(job)
    return Cancelled(
        jobs=tuple(change.after for change in changes),
        already=tuple(already),
        refused=tuple(refused),
        ended=tuple(ended),
        not_found=not_found,
        freed=freed_by(changes),
    )
