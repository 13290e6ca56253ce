"""What people do: every form of the pages posts to one of these, and is led back to see what came of it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from msgspec import UNSET
from starlette.requests import Request

from headrace import validation
from headrace.dashboard.asked import Asked
from headrace.dashboard.contents import laid_out
from headrace.dashboard.views.bulk import matching
from headrace.dashboard.views.jobs import Filters
from headrace.dashboard.words import jobs_counted
from headrace.envelope import published
from headrace.errors import InvalidInput, RequestTooLarge
from headrace.limits import QueueLimits, Rate
from headrace.tokens import Scope

FIELDS_MAX = 1200
"""Of a form: a page of ticked jobs, and more."""

Act = Callable[[Asked, "Form"], Awaitable["Done"]]


class Done(NamedTuple):
    """What came of it: where to go, and which sentence to show there."""

    to: str
    notice: str
    about: str = ""

    @property
    def address(self) -> str:
        said = urlencode({"notice": self.notice, "about": self.about})
        return f"{self.to}{'&' if '?' in self.to else '?'}{said}"


class Form:
    """The fields of a form, as text."""

    def __init__(self, fields: Iterable[tuple[str, str]]) -> None:
        self._fields = [(name, value) for name, value in fields if value != ""]

    @classmethod
    async def read(cls, request: Request, bytes_max: int) -> Form:
        """A form as browsers send it without files."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise InvalidInput(f"a form is expected, not {kind or 'nothing'}; nothing was changed")
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > bytes_max:
                raise RequestTooLarge(
                    f"the form has more than {bytes_max} bytes; nothing was changed"
                )
        try:
            return cls(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX))
        except ValueError as error:
            raise InvalidInput(f"the form cannot be read: {error}; nothing was changed") from error

    def word(self, name: str) -> str | None:
        """None where it is missing or empty."""
        return next((value for key, value in self._fields if key == name), None)

    def need(self, name: str) -> str:
        value = self.word(name)
        if value is None:
            raise InvalidInput(f"the form says no {name}; nothing was changed")
        return value

    def words(self, name: str) -> tuple[str, ...]:
        return tuple(value for key, value in self._fields if key == name)


async def pause(asked: Asked, form: Form) -> Done:
    queue = form.need("queue")
    await asked.manager.pause(queue)
    return Done(
        asked.links.own(form.word("back")) or asked.links.to("queue", name=queue), "paused", queue
    )


async def resume(asked: Asked, form: Form) -> Done:
    queue = form.need("queue")
    await asked.manager.resume(queue)
    return Done(
        asked.links.own(form.word("back")) or asked.links.to("queue", name=queue), "resumed", queue
    )


async def cancel(asked: Asked, form: Form) -> Done:
    job_id = (await asked.manager.get(form.need("id"))).id
    await asked.manager.cancel([job_id], reason=form.word("reason"))
    return Done(asked.links.to("job", id=job_id), "cancelled", job_id)


async def redrive(asked: Asked, form: Form) -> Done:
    """With the arguments of the form where they are others than the job's own."""
    job = await asked.manager.get(form.need("id"))
    payload: Any = UNSET
    text = form.word("payload")
    if text is not None and asked.sees_contents:
        own = laid_out(published(job.payload_json))
        if text.replace("\r\n", "\n").strip() != own.strip():
            payload = _json(text)
    job_id = job.id
    submitted = await asked.manager.redrive([job_id], payload=payload)
    return Done(asked.links.to("job", id=submitted.jobs[0].id), "redriven", job_id)


async def delete(asked: Asked, form: Form) -> Done:
    job_id = (await asked.manager.get(form.need("id"))).id
    await asked.manager.delete([job_id])
    return Done(asked.links.to("jobs"), "deleted", job_id)


async def update(asked: Asked, form: Form) -> Done:
    job_id = form.need("id")
    priority, tag = form.word("priority"), form.word("add_tag")
    await asked.manager.update(
        job_id,
        priority=UNSET if priority is None else validation.check_priority(priority),
        add_tags=() if tag is None else (tag,),
    )
    return Done(asked.links.to("job", id=job_id), "updated")


async def reschedule(asked: Asked, form: Form) -> Done:
    job_id = form.need("id")
    await asked.manager.reschedule(job_id)
    return Done(asked.links.to("job", id=job_id), "rescheduled")


def _json(text: str) -> Any:
    try:
        return json.loads(text)  # of any size, numbers included
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the arguments are no JSON: {error}; nothing was submitted") from None


async def begin_bulk(asked: Asked, form: Form) -> Done:
    """On all that match: the filters of the dry run come with the form."""
    filters = Filters.given(form)
    rate, expected = form.word("rate"), form.word("expected")
    begun = await asked.manager.start_bulk(
        form.need("act"),
        matching(form, filters, asked.now),
        rate=None if rate is None else Rate.parse(rate),
        reason=form.word("reason"),
        expected=int(expected) if expected is not None and expected.isdecimal() else None,
    )
    return Done(asked.links.to("bulk/act", id=begun.id), "bulk-begun")


async def stop_bulk(asked: Asked, form: Form) -> Done:
    act_id = form.need("id")
    await asked.manager.cancel_bulk(act_id)
    return Done(asked.links.to("bulk/act", id=act_id), "bulk-stopped")


async def selected(asked: Asked, form: Form) -> Done:
    """What is ticked in a list: each act is done in one step, to all of them or to none."""
    ids = form.words("id")
    back = asked.links.own(form.word("back")) or asked.links.to("jobs")
    if not ids:
        return Done(back, "nothing")
    about = jobs_counted(len(ids))
    match form.need("what"):
        case "redrive":
            await asked.manager.redrive(ids)
            return Done(back, "redriven-many", about)
        case "cancel":
            await asked.manager.cancel(ids)
            return Done(back, "cancelled", about)
        case "delete":
            await asked.manager.delete(ids)
            return Done(back, "deleted", about)
        case other:
            raise InvalidInput(f"{other!r} is no act; nothing was changed")


async def schedule(asked: Asked, form: Form) -> Done:
    name, tenant = form.need("name"), form.need("of")
    manager = asked.manager.scoped(tenant)  # names are unique within a tenant
    back = asked.links.to("schedules")
    match form.need("what"):
        case "run":
            job = await manager.run_schedule(name)
            return Done(asked.links.to("job", id=job.id), "schedule-ran", name)
        case "pause":
            await manager.pause_schedule(name)
            return Done(back, "schedule-paused", name)
        case "resume":
            await manager.resume_schedule(name)
            return Done(back, "schedule-resumed", name)
        case "remove":
            await manager.unschedule(name)
            return Done(back, "schedule-removed", name)
        case other:
            raise InvalidInput(f"{other!r} is no act; nothing was changed")


async def expire_worker(asked: Asked, form: Form) -> Done:
    worker = form.need("worker")
    await asked.manager.expire_worker(worker)
    return Done(asked.links.to("worker", name=worker), "expired", worker)


async def set_limits(asked: Asked, form: Form) -> Done:
    """Exactly these from now on; a form without any takes them all away."""
    queue = form.need("queue")
    limits = limits_of(form)
    back = asked.links.to("limits", queue=queue)
    if limits.are_none:
        await asked.manager.remove_limits(queue)
        return Done(back, "unlimited", queue)
    await asked.manager.set_limits(queue, limits)
    return Done(back, "limited", queue)


def limits_of(form: Form) -> QueueLimits:
    """The limits that a form says. Weights are lines of `tenant=weight`."""
    return QueueLimits(
        concurrency=_count(form, "concurrency"),
        key_concurrency=_count(form, "key_concurrency"),
        tenant_concurrency=_count(form, "tenant_concurrency"),
        rate=_rate(form, "rate"),
        key_rate=_rate(form, "key_rate"),
        fair=form.word("fair") is not None,
        weights=_weights(form.word("weights") or ""),
        waiting_jobs_max=_count(form, "waiting_jobs_max"),
        waiting_bytes_max=_count(form, "waiting_bytes_max"),
        tenant_waiting_jobs_max=_count(form, "tenant_waiting_jobs_max"),
        tenant_waiting_bytes_max=_count(form, "tenant_waiting_bytes_max"),
    )


def _count(form: Form, name: str) -> int | None:
    text = form.word(name)
    if text is None:
        return None
    if not text.strip().isdecimal():
        raise InvalidInput(f"{name} is {text!r}, which is not a number; nothing was changed")
    return int(text)


def _rate(form: Form, name: str) -> Rate | None:
    """`5/s`, `100/m`, `5/10s`, and the most at once after `burst`."""
    text = form.word(name)
    return None if text is None else Rate.parse(text, _count(form, f"{name}_burst"))


def _weights(text: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    for line in filter(None, (line.strip() for line in text.splitlines())):
        tenant, equals, weight = line.rpartition("=")
        try:
            weights[tenant.strip()] = float(weight)
        except ValueError:
            equals = ""
        if not equals:
            raise InvalidInput(f"{line!r} is no weight: write tenant=2; nothing was changed")
    return weights


async def revoke_token(asked: Asked, form: Form) -> Done:
    token_id = form.need("id")
    await asked.manager.revoke_token(token_id)
    return Done(asked.links.to("tokens"), "revoked", token_id)


class Right(NamedTuple):
    """An act, and what it needs."""

    act: Act
    scopes: tuple[Scope, ...]
    for_operators: bool = False
    """Concerns everybody: not for tokens that act for one tenant."""


ACTS: Mapping[str, Right] = {
    "pause": Right(pause, (Scope.OPERATE,)),
    "resume": Right(resume, (Scope.OPERATE,)),
    "cancel": Right(cancel, (Scope.OPERATE,)),
    "redrive": Right(redrive, (Scope.OPERATE,)),
    "delete": Right(delete, (Scope.OPERATE,)),
    "update": Right(update, (Scope.OPERATE,)),
    "reschedule": Right(reschedule, (Scope.OPERATE,)),
    "selected": Right(selected, (Scope.OPERATE,)),
    "bulk": Right(begin_bulk, (Scope.OPERATE,)),
    "stop-bulk": Right(stop_bulk, (Scope.OPERATE,)),
    "schedule": Right(schedule, (Scope.OPERATE,)),
    "expire-worker": Right(expire_worker, (Scope.ADMIN,), for_operators=True),
    "limits": Right(set_limits, (Scope.ADMIN,), for_operators=True),
    "revoke-token": Right(revoke_token, (Scope.ADMIN,), for_operators=True),
}
