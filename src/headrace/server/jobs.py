"""Handlers of the routes of jobs: submitting, reading, steering."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from headrace import codec, validation
from headrace.api import jobs as api
from headrace.api.route import KEY_HEADER
from headrace.api.submissions import JobBody, content_of, spec_of
from headrace.errors import (
    Forbidden,
    InvalidLimit,
    InvalidRequest,
    JobNotFound,
    KeyReused,
    NotEnded,
)
from headrace.manager import Cancelled, Submitted
from headrace.manager.submission import SUBMISSION_TIMEOUT_SECONDS, acknowledged
from headrace.model import Job
from headrace.server.call import Call, Handlers, Reply
from headrace.tokens import Scope

WAIT_SECONDS_MAX = 300.0


async def submit(call: Call[None, JobBody]) -> Reply:
    body = call.body
    named = call.request.headers.get(KEY_HEADER)
    if named is not None:
        key = _unquoted(named)
        if body.key not in (None, key):
            raise InvalidRequest(f"{KEY_HEADER} and the body's key differ; nothing was stored")
        body = msgspec.structs.replace(body, key=key)
    spec = spec_of(body)
    async with acknowledged(SUBMISSION_TIMEOUT_SECONDS):
        submitted = await call.manager.submit(spec)
    job, (created,) = submitted.job, submitted.created
    if named is not None and not created and not _is_same(job, body):
        raise KeyReused(
            f"the key {key!r} stands for job {job.id}, which has another payload; nothing was stored"
        )
    place = f"{call.root_path}{api.GET.address(job_id=job.id)}"
    return Reply(_answer(call, job), status=201 if created else 200, headers=(("Location", place),))


def _unquoted(header: str) -> str:
    """A structured string, `"abc"`, or bare text as many send it."""
    text = header.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return validation.check_key(text)


def _is_same(job: Job, body: JobBody) -> bool:
    """Whether the stored job has the payload of this request; the scope of its key says the rest."""
    try:
        return bool(
            job.payload_json == bytes(body.payload)
            or _value(job.payload_json) == _value(body.payload)
        )
    except msgspec.DecodeError:
        return False


def _value(raw: bytes | msgspec.Raw) -> Any:
    return codec.decode(bytes(raw))


async def submit_many(call: Call[None, api.BatchOfJobs]) -> api.SubmittedAnswer:
    specs = [spec_of(one) for one in _bounded(call, call.body.jobs)]
    async with acknowledged(SUBMISSION_TIMEOUT_SECONDS):
        submitted = await call.manager.submit_many(specs)
    return _submitted(call, submitted)


async def submit_batch(call: Call[None, api.NewBatch]) -> api.BatchAnswer:
    body = call.body
    callback = None if body.callback is None else spec_of(body.callback)
    specs = [spec_of(one) for one in body.jobs]
    async with acknowledged(SUBMISSION_TIMEOUT_SECONDS):
        batch = await call.manager.submit_batch(specs, callback, batch_id=body.batch_id)
    return api.BatchAnswer(
        id=batch.id, job_ids=batch.job_ids, callback_id=batch.callback_id, created=batch.created
    )


async def batch(call: Call[None, None]) -> api.ProgressAnswer:
    progress = await call.manager.batch(call["batch_id"])
    return api.ProgressAnswer(
        id=progress.id,
        states=progress.states,
        total=progress.total,
        ended=progress.ended,
        done=progress.done,
    )


async def find(call: Call[api.FindQuery, None]) -> api.FoundAnswer:
    query = call.query
    most = call.service.bounds.page_jobs_max
    page = await call.manager.find(
        queues=query.queue,
        types=query.type,
        states=query.state,
        tags=query.tag,
        assignee=query.worker,
        created_from=query.created_from,
        created_before=query.created_before,
        newest_first=query.newest_first,
        limit=validation.check_limit(query.limit, "limit", maximum=most),
        cursor=query.cursor,
    )
    return api.FoundAnswer(jobs=_answers(call, page.jobs), cursor=page.cursor)


async def look_up(call: Call[None, api.LookUpBody]) -> api.JobsAnswer:
    ids = _bounded(call, call.body.ids)
    found = await call.manager.look_up(ids)
    return api.JobsAnswer(jobs=_answers(call, (found[each] for each in ids if each in found)))


async def get(call: Call[None, None]) -> api.JobAnswer:
    return _answer(call, await call.manager.get(call["job_id"]))


async def result(call: Call[None, None]) -> api.ResultAnswer:
    job = await call.manager.get(call["job_id"])
    if not job.is_terminal:
        raise NotEnded(f"job {job.id} is {job.state}: there is no result yet", job_id=job.id)
    answer = _answer(call, job)
    return api.ResultAnswer(
        job_id=job.id, state=job.state, result=answer.result, failure=answer.failure
    )


async def wait(call: Call[api.WaitQuery, None]) -> api.JobAnswer:
    seconds = call.query.seconds
    if not 0 <= seconds <= WAIT_SECONDS_MAX:
        raise InvalidLimit(f"a wait takes 0 to {WAIT_SECONDS_MAX:g} seconds; nothing was changed")
    return _answer(call, await call.service.hub.wait_for_end(call.manager, call["job_id"], seconds))


async def events(call: Call[api.EventsQuery, None]) -> api.EventsAnswer:
    job = await call.manager.get(call["job_id"])
    after = await call.manager.tail() if call.query.after == "end" else call.query.after
    limit = validation.check_limit(
        call.query.limit, "limit", maximum=call.service.bounds.page_jobs_max
    )
    found = await call.manager.events(after=after, job_id=job.id, limit=limit)
    return api.events_answer(found, after, contents=call.access.sees_contents)


async def failures(call: Call[api.LastQuery, None]) -> api.FailuresAnswer:
    names = api.FailedAttemptAnswer.__struct_fields__
    found = await call.manager.failed_attempts(call["job_id"], limit=call.query.limit)
    return api.FailuresAnswer(
        attempts=tuple(
            api.FailedAttemptAnswer(**{name: getattr(one, name) for name in names}) for one in found
        )
    )


async def explain(call: Call[None, None]) -> api.ExplanationAnswer:
    found = await call.manager.explain(call["job_id"])
    return api.ExplanationAnswer(
        job=_answer(call, found.job),
        reasons=tuple(
            api.ReasonAnswer(why=one.why, message=one.message, facts=one.facts)
            for one in found.reasons
        ),
        place=found.place,
    )


async def cancel(call: Call[None, api.CancelBody]) -> api.CancelledAnswer:
    job_id = call["job_id"]
    cancelled = await call.manager.cancel([job_id], mode=call.body.mode, reason=call.body.reason)
    if cancelled.not_found:
        raise JobNotFound(job_id)
    return _cancelled(call, cancelled)


async def cancel_many(call: Call[None, api.CancelManyBody]) -> api.CancelledAnswer:
    body = call.body
    return _cancelled(
        call,
        await call.manager.cancel(
            _bounded(call, body.ids),
            tags=body.tags,
            mode=body.mode,
            reason=body.reason,
            dry_run=body.dry_run,
        ),
    )


async def update(call: Call[None, api.UpdateBody]) -> api.JobAnswer:
    said = {name: getattr(call.body, name) for name in api.UpdateBody.__struct_fields__}
    return _answer(call, (await call.manager.update(call["job_id"], **said)).job)


async def reschedule(call: Call[None, api.RescheduleBody]) -> api.JobAnswer:
    return _answer(call, (await call.manager.reschedule(call["job_id"], call.body.run_at)).job)


async def redrive(call: Call[None, api.RedriveBody]) -> Reply:
    payload = _changed_payload(call, call.body.payload)
    job = (await call.manager.redrive([call["job_id"]], payload=payload)).job
    place = f"{call.root_path}{api.GET.address(job_id=job.id)}"
    return Reply(_answer(call, job), headers=(("Location", place),))


async def redrive_many(call: Call[None, api.RedriveManyBody]) -> api.SubmittedAnswer:
    ids = _bounded(call, call.body.ids)
    payload = _changed_payload(call, call.body.payload)
    return _submitted(call, await call.manager.redrive(ids, tags=call.body.tags, payload=payload))


def _changed_payload(call: Call[Any, Any], payload: msgspec.Raw | UnsetType) -> Any:
    """Whoever gives a job another payload submits one, and must be let see what it replaces."""
    if isinstance(payload, UnsetType):
        return UNSET
    check_may_change_payloads(call)
    return content_of(payload, "payload")


def check_may_change_payloads(call: Call[Any, Any]) -> None:
    if not call.access.may(Scope.SUBMIT, Scope.READ_PAYLOAD):
        raise Forbidden(
            f"another payload needs the scopes {Scope.SUBMIT} and {Scope.READ_PAYLOAD}, too"
        )


async def delete(call: Call[None, None]) -> None:
    job_id = call["job_id"]
    if not await call.manager.delete([job_id]):
        raise JobNotFound(job_id)


async def delete_many(call: Call[None, api.SelectionBody]) -> api.JobsAnswer:
    ids = _bounded(call, call.body.ids)
    return api.JobsAnswer(jobs=_answers(call, await call.manager.delete(ids, tags=call.body.tags)))


def _bounded(call: Call[Any, Any], given: tuple[Any, ...]) -> tuple[Any, ...]:
    most = call.service.bounds.batch_jobs_max
    if len(given) > most:
        raise InvalidLimit(
            f"{len(given)} jobs are named at once, the limit is {most}; {validation.UNCHANGED}"
        )
    return given


def _answer(call: Call[Any, Any], job: Job) -> api.JobAnswer:
    return api.job_answer(job, contents=call.access.sees_contents)


def _answers(call: Call[Any, Any], jobs: Iterable[Job]) -> tuple[api.JobAnswer, ...]:
    return tuple(_answer(call, job) for job in jobs)


def _submitted(call: Call[Any, Any], submitted: Submitted) -> api.SubmittedAnswer:
    return api.SubmittedAnswer(jobs=_answers(call, submitted.jobs), created=submitted.created)


def _cancelled(call: Call[Any, Any], cancelled: Cancelled) -> api.CancelledAnswer:
    return api.CancelledAnswer(
        jobs=_answers(call, cancelled.jobs),
        already=_answers(call, cancelled.already),
        refused=_answers(call, cancelled.refused),
        ended=_answers(call, cancelled.ended),
        not_found=cancelled.not_found,
        freed=cancelled.freed,
    )


HANDLERS: Handlers = {
    api.SUBMIT: submit,
    api.SUBMIT_MANY: submit_many,
    api.SUBMIT_BATCH: submit_batch,
    api.BATCH: batch,
    api.FIND: find,
    api.LOOK_UP: look_up,
    api.GET: get,
    api.RESULT: result,
    api.WAIT: wait,
    api.JOB_EVENTS: events,
    api.FAILURES: failures,
    api.EXPLAIN: explain,
    api.CANCEL: cancel,
    api.CANCEL_MANY: cancel_many,
    api.UPDATE: update,
    api.RESCHEDULE: reschedule,
    api.REDRIVE: redrive,
    api.REDRIVE_MANY: redrive_many,
    api.DELETE: delete,
    api.DELETE_MANY: delete_many,
}
