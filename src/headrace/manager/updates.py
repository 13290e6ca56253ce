"""Changing what a user says of a job that has not ended: priority, tags, correlation id, callback url."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from headrace import completion, lifecycle, validation
from headrace.errors import InvalidInput, Refusal, StoreError
from headrace.manager import submission
from headrace.manager.changes import Changed
from headrace.manager.context import Context
from headrace.manager.priority_inheritance import lift_dependents
from headrace.manager.records import Again, retried
from headrace.model import Job
from headrace.redaction import Redacted
from headrace.spec import check_correlation_id

logger = logging.getLogger("headrace.manager")


class Wanted(Redacted, frozen=True, kw_only=True):
    """A checked request. UNSET leaves what is there."""

    priority: int | UnsetType = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    """All that its user gives the job."""
    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()
    correlation_id: str | UnsetType | None = UNSET
    callback_url: str | UnsetType | None = UNSET


def wanted(
    *,
    priority: object,
    tags: object,
    add_tags: Iterable[object] | Mapping[str, object],
    remove_tags: Iterable[object] | Mapping[str, object],
    correlation_id: object,
    callback_url: object,
) -> Wanted:
    """Raises the InvalidInput that says what is wrong."""
    asked = Wanted(
        priority=UNSET if priority is UNSET else validation.check_priority(priority),
        tags=UNSET if tags is UNSET else validation.check_tags(tags),  # type: ignore[arg-type]  # it checks
        add_tags=validation.check_tags(add_tags),
        remove_tags=validation.check_tags(remove_tags),
        correlation_id=UNSET if correlation_id is UNSET else check_correlation_id(correlation_id),
        callback_url=callback_url
        if callback_url is UNSET or callback_url is None
        else validation.check_url(callback_url, "the callback url"),
    )
    if asked == Wanted():
        raise InvalidInput(f"nothing to update was given; {validation.UNCHANGED}")
    if asked.tags is not UNSET and (asked.add_tags or asked.remove_tags):
        raise InvalidInput(f"give all tags, or those to add and to remove; {validation.UNCHANGED}")
    both = sorted(set(asked.add_tags) & set(asked.remove_tags))
    if both:
        raise InvalidInput(f"tag {both[0]!r} is to be added and removed; {validation.UNCHANGED}")
    given = () if asked.tags is UNSET else asked.tags
    for tag in (*given, *asked.add_tags, *asked.remove_tags):
        if completion.is_tie(tag):
            raise InvalidInput(
                f"the tag {tag!r} ties a job to what it waits for, and is Headrace's own; "
                f"{validation.UNCHANGED}"
            )
    return asked


def told(asked: Wanted) -> dict[str, object]:
    """For the audit: what is to be changed. A url may hold a secret: only that it is changed is said."""
    said = {
        name: getattr(asked, name)
        for name in asked.__struct_fields__
        if getattr(asked, name) not in (UNSET, ())
    }
    return said | ({"callback_url": "changed"} if "callback_url" in said else {})


async def update(context: Context, job_id: str, asked: Wanted) -> Changed:
    """The job with what was asked for. What is so already is left, without an event."""

    async def once() -> Changed:
        job = await context.read_one(job_id)
        change = lifecycle.apply(job, await _command(context, job, asked), context.now())
        if change.after == replace(job, version=change.after.version):
            changed = job
        else:
            await _bring_webhook(context, change.after)
            (written,) = await context.store.update([change])
            if not written:
                raise Again
            changed = change.after
        if asked.priority is not UNSET:
            await _lift_or_leave(context, changed)
        return Changed((changed,), {})

    return await retried(once, f"job {job_id} kept changing during the update; nothing was changed")


async def _lift_or_leave(context: Context, job: Job) -> None:
    """The update itself stands: an error here must not look as if it did not."""
    try:
        await lift_dependents(context, job)
    except (StoreError, Refusal) as error:
        logger.warning(
            "what waits for job %s may have kept its priority (repeat the update): %s",
            job.id,
            error,
        )


async def _command(context: Context, job: Job, asked: Wanted) -> lifecycle.Update:
    priority = asked.priority
    if priority is not UNSET and priority > job.priority:
        priority = await _at_least_as_its_parents(context, job, priority)
    return lifecycle.Update(
        priority=priority,
        tags=_tags(job, asked),
        correlation_id=asked.correlation_id,
        callback_url=asked.callback_url,
    )


async def _at_least_as_its_parents(context: Context, job: Job, priority: int) -> int:
    """As at submission: a dependent job is as urgent as the most urgent job it depends on."""
    edges = await context.store.edges(child_id=job.id)
    parents = await context.read([edge.parent_id for edge in edges])
    return min([priority, *(parent.priority for parent in parents.values())])


def _tags(job: Job, asked: Wanted) -> tuple[str, ...] | UnsetType:
    if asked.tags is not UNSET:
        ties = [tag for tag in job.tags if completion.is_tie(tag)]
        return validation.check_tags([*ties, *asked.tags])
    if not asked.add_tags and not asked.remove_tags:
        return UNSET
    return validation.check_tags({*job.tags, *asked.add_tags} - set(asked.remove_tags))


async def _bring_webhook(context: Context, after: Job) -> None:
    """See to it that somebody tells the callback url, before it is written.

    If the update is refused after all, the webhook finds a job without that url, and has nothing to tell.
    """
    if not context.policy(after.queue).deliver_callbacks:
        return
    brought = completion.webhooks(after, deliver=True)
    if not brought:
        return
    (webhook,) = brought
    edges = await context.store.edges(parent_id=after.id)
    waiting = await context.read([edge.child_id for edge in edges])
    if any(
        completion.is_webhook_of(one, after.id) and not one.is_terminal for one in waiting.values()
    ):
        return
    # The key: of two updates at once, one brings the webhook.
    keyed = replace(webhook, key=completion.Role.WEBHOOK.of(after.id))
    await submission.submit(context, [keyed], own_ids=True)
