"""Results of jobs as arguments of others: named when they are submitted, put in before they run.

A payload says which under a key that no argument can have: `{"$results": {"text": "ID"}}`, or a list of
ids for a list of results. What stands inside an argument never does, so data from outside names no job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

import msgspec

from headrace import validation
from headrace.errors import InvalidInput, PermanentError, Snooze
from headrace.manager import JobManager
from headrace.model import Job, State
from headrace.spec import JobSpec

T = TypeVar("T")

RESULTS = "$results"
SEALED_SNOOZE_SECONDS = 30.0
"""A worker without the key of a job, or of a result that it takes, looks at it this often."""
_MARK = b'"$results"'
_Ids = dict[str, str | list[str]]


class ResultOf:
    """Stands for the result of a job, or for a list of several, until there is one.

    No value that could be encoded: one that stands inside another is refused like any other stranger.
    """

    __slots__ = ("is_list", "job_ids")

    def __init__(self, job_ids: tuple[str, ...], *, is_list: bool) -> None:
        self.job_ids = job_ids
        self.is_list = is_list

    def __repr__(self) -> str:
        return f"<result of {', '.join(self.job_ids) or 'no job'}>"

    @property
    def stored(self) -> str | list[str]:
        return list(self.job_ids) if self.is_list else self.job_ids[0]


def result_of(job: Job[T] | JobSpec) -> T:
    """The result that the job will have, as an argument: `await parse.submit(result_of(fetched))`.

    The job that takes it runs after this one has completed, and falls if it does not. To type checkers it
    is of the type that the handler returns.
    """
    return cast("T", ResultOf((_id_of(job),), is_list=False))


def results_of(jobs: Iterable[Job[T] | JobSpec]) -> list[T]:
    """The results of all of them, in this order, as one argument."""
    return cast(
        "list[T]",
        ResultOf(tuple(_id_of(job) for job in validation.listed(jobs, "jobs")), is_list=True),
    )


def _id_of(job: object) -> str:
    if isinstance(job, Job | JobSpec) and job.id is not None:
        return validation.check_id(job.id)
    if isinstance(job, JobSpec):
        raise InvalidInput(
            "a spec whose result is wanted needs an id: task.options(id=…).spec(…); nothing was stored"
        )
    raise InvalidInput(
        f"a {type(job).__name__} has no result: give the job that submit gave; nothing was stored"
    )


def named_jobs(payload: Mapping[str, Any]) -> list[str]:
    """The ids of the jobs whose results the payload of a call names, each once."""
    named: Mapping[str, str | list[str]] = payload.get(RESULTS, {})
    ids = (job_id for one in named.values() for job_id in ([one] if isinstance(one, str) else one))
    return list(dict.fromkeys(ids))


def needs_results(job: Job) -> bool:
    """Whether the payload names results. Quick, and certain only when it says no."""
    return _MARK in job.payload_json


async def with_results(job: Job, manager: JobManager) -> Job:
    """The job with the results in its payload that it names. Raises PermanentError where one is missing."""
    payload = job.payload
    if not isinstance(payload, dict) or RESULTS not in payload:
        return job
    try:
        wanted = msgspec.convert(payload.pop(RESULTS), _Ids)
    except msgspec.ValidationError as error:
        raise PermanentError(f"{RESULTS} of the payload names no jobs: {error}") from error
    jobs = manager if manager.tenant else manager.scoped(job.tenant)
    ids = named_jobs({RESULTS: wanted})
    found = await jobs.look_up(ids)
    values = {job_id: _result(job_id, found.get(job_id)) for job_id in ids}
    for name, one in wanted.items():
        payload[name] = values[one] if isinstance(one, str) else [values[each] for each in one]
    return msgspec.structs.replace(job, payload_json=msgspec.json.encode(payload))


def _result(job_id: str, job: Job | None) -> Any:
    if job is None or job.state is not State.COMPLETED:
        state = "not there any more" if job is None else job.state.value
        raise PermanentError(
            f"an argument is the result of job {job_id}, which is {state}", code="no_result"
        )
    if job.is_sealed:
        raise Snooze(SEALED_SNOOZE_SECONDS)  # another worker may have the key
    return job.result
