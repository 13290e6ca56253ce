"""Who hears of a job's end: the jobs that a submission brings along, and when each is wanted. Pure.

Nothing watches the log. Whoever wants to hear of a job's end is a job that waits for it: stored in the
same step, durable, retried with backoff, visible in every list. What it waits for, and as what, stands in
a tag (`on-failure-of=<id>`), so that it can be found, and is found again when it is redriven.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from headrace import graph, validation
from headrace.errors import InvalidInput
from headrace.model import Dependency, DependencyKind, Job, State, new_id
from headrace.policy import WEBHOOKS_QUEUE
from headrace.spec import JobSpec, dependencies, hooks

WEBHOOK_TYPE = "headrace.webhook"
JOIN_TYPE = "headrace.join"
"""A job without a handler, between a large batch and its callback: whoever claims it completes it."""


class Role(enum.StrEnum):
    """What a job is to another job, or to a batch: the name of the tag that says so."""

    ON_SUCCESS = "on-success-of"
    ON_FAILURE = "on-failure-of"
    WEBHOOK = "webhook-of"
    MEMBER = "batch"
    JOIN = "join-of"
    CALLBACK = "callback-of"

    def of(self, id: str) -> str:
        """The whole tag."""
        return f"{self}={id}"


_ROLES = frozenset(Role)
HOOKS = frozenset({Role.ON_SUCCESS, Role.ON_FAILURE})
_RUN_BY_WORKERS = (Role.ON_SUCCESS, Role.ON_FAILURE, Role.CALLBACK)


class HookCall(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job runs that waited for others to end, and what there is to tell its handler."""

    wanted: bool
    """False: no handler is to run; the job completes with `note` for its result."""
    note: str
    about: Mapping[str, Any] = {}
    """`{"job": {…}}` for a hook, `{"batch": {…}}` for the callback of a batch."""

    def payload(self, own: Any) -> Any:
        """The job's own payload together with what it is about, in one object."""
        if own is None:
            return dict(self.about)
        return (own if isinstance(own, dict) else {"payload": own}) | dict(self.about)


def _is_empty(hooks: object) -> bool:
    return type(hooks) is tuple and not hooks


def follow_ups(spec: JobSpec, job: Job, *, deliver: bool) -> list[JobSpec]:
    """The jobs that are stored with this one because they wait for its end."""
    if _is_empty(spec.on_success) and _is_empty(spec.on_failure) and job.callback_url is None:
        return []  # nearly every job
    brought = [
        *(_hook(one, job.id, Role.ON_SUCCESS) for one in hooks(spec.on_success, "on_success")),
        *(_hook(one, job.id, Role.ON_FAILURE) for one in hooks(spec.on_failure, "on_failure")),
    ]
    return [replace(one, tenant=one.tenant or job.tenant) for one in brought] + webhooks(
        job, deliver=deliver
    )


def webhooks(job: Job, *, deliver: bool) -> list[JobSpec]:
    """The job that tells this one's callback url of its end, if it has one and its queue delivers."""
    if job.callback_url is None or not deliver:
        return []
    # The id of the message is drawn here: it must outlive retries, and a redrive of the delivery.
    payload = {"job_id": job.id, "url": job.callback_url, "message_id": new_id()}
    return [
        JobSpec(
            type=WEBHOOK_TYPE,
            queue=WEBHOOKS_QUEUE,
            tenant=job.tenant,
            payload=payload,
            tags=[Role.WEBHOOK.of(job.id)],
            after=[Dependency(job.id, DependencyKind.AFTER_ANY)],
            correlation_id=job.correlation_id,
        )
    ]


def is_webhook_of(job: Job, of: str) -> bool:
    return job.type == WEBHOOK_TYPE and Role.WEBHOOK.of(of) in job.tags


def is_tie(tag: str) -> bool:
    """Does the tag say what the job was stored to follow, or to gather? Without it, it would not."""
    return tag == graph.GATHERS or tag.partition("=")[0] in _ROLES


def wanted(role: Role, outcome: State | None) -> bool:
    """Whether a hook runs after a job that ended so. None: nobody knows any more, so it does."""
    if role is Role.ON_SUCCESS:
        return outcome in (None, State.COMPLETED)
    return role is not Role.ON_FAILURE or outcome is not State.COMPLETED


def link_of(job: Job) -> tuple[Role, str] | None:
    """What the job was stored to follow, and as what; None for a job that stands for itself."""
    for role in _RUN_BY_WORKERS:
        head = role.of("")
        for tag in job.tags:
            if tag.startswith(head):
                return role, tag.removeprefix(head)
    return None


def batch_of(job: Job) -> str:
    """The id of the batch whose callback the job is. Raises InvalidInput if it is none's."""
    link = link_of(job)
    if link is None or link[0] is not Role.CALLBACK:
        raise InvalidInput(f"job {job.id} is not the callback of a batch: there are no results")
    return link[1]


def hook_role(job: Job, of: str) -> Role | None:
    """As what kind of hook the job was stored with the job `of`, if it was."""
    return next((role for role in sorted(HOOKS) if role.of(of) in job.tags), None)


def lasting(spec: JobSpec) -> JobSpec:
    """Without a lifetime, unless it was given one.

    Counted from its submission it would end with that of the job it waits for, and whoever waits to
    hear of that end would never hear.
    """
    return replace(spec, lifetime_seconds=None) if spec.lifetime_seconds is UNSET else spec


def refuse_own_ties(spec: JobSpec, what: str) -> None:
    """Raise if a job that waits for something given names dependencies or a key of its own."""
    if dependencies(spec):
        raise InvalidInput(
            f"{what} waits for nothing else: leave out after; {validation.UNCHANGED}"
        )
    if spec.key is not None:
        raise InvalidInput(
            f"{what} is stored exactly when what it waits for is: leave out key; {validation.UNCHANGED}"
        )


def tagged(spec: JobSpec, *tags: str) -> JobSpec:
    return replace(spec, tags=(*validation.check_tags(spec.tags), *tags))


def _hook(spec: JobSpec, job_id: str, role: Role) -> JobSpec:
    refuse_own_ties(spec, f"a hook ({role.partition('-of')[0]})")
    # A job that must not run because the other completed cannot fall with it: it is released, and the
    # worker that claims it asks `wanted`.
    kind = DependencyKind.AFTER if role is Role.ON_SUCCESS else DependencyKind.AFTER_ANY
    return replace(lasting(tagged(spec, role.of(job_id))), after=[Dependency(job_id, kind)])
