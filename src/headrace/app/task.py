"""A task: a function under a registered name, and how its jobs are to run."""

from __future__ import annotations

import enum
import hashlib
import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack, overload

import msgspec
from msgspec import UNSET

from headrace import codec, retry, validation
from headrace.app import celery_words
from headrace.app.arguments import Arguments
from headrace.app.inputs import RESULTS, named_jobs
from headrace.app.options import Options, TaskOptions, options_of
from headrace.errors import InvalidInput, InvalidLimit, InvalidName, InvalidPayload
from headrace.input_checks import guarded
from headrace.model import Dependency, Job
from headrace.policy import Policies
from headrace.spec import JobSpec, checked, dependencies, timeout_of

if TYPE_CHECKING:
    from headrace.app.application import Headrace

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")

VERSION_MARK = "@"
"""Between a task's name and its version in a job's type; version 1 has neither."""

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
"""From the payload of one version to that of the next."""


class Isolation(enum.StrEnum):
    """Where a handler runs."""

    LOOP = "loop"
    """Async functions, on the worker's event loop."""
    THREAD = "thread"
    """Sync functions, in a thread each."""
    PROCESS = "process"
    """In a child process that can be killed."""


@guarded
class Task(Generic[P, R_co]):
    """A registered function. Calling it runs it here and now; `submit` makes a job of the call."""

    def __init__(
        self,
        app: Headrace,
        function: Callable[P, R_co],
        *,
        name: str,
        version: int,
        isolation: Isolation,
        options: Options,
        upcasters: Mapping[int, Upcaster],
    ) -> None:
        if VERSION_MARK in name:
            raise InvalidName(f"{name!r} holds {VERSION_MARK!r}, which marks a task's version")
        if version < 1:
            raise InvalidLimit(f"the version of task {name!r} is {version}; it must be 1 or more")
        self.app = app
        self.function = function
        self.name = name
        self.version = version
        self.type = type_of(name, version)
        """The type of the jobs that this code submits."""
        self.isolation = isolation
        self.arguments = Arguments(function, name)
        self.given = options
        self._upcasters = dict(upcasters)
        self.__doc__ = function.__doc__
        self.__name__ = name
        try:
            self.template = self._template()
            _check_timeout(self.template, app.policies or Policies())
        except InvalidInput as error:
            raise type(error)(f"task {name!r}: {error.message}") from error
        for argument in _names(options):
            if argument not in inspect.signature(function).parameters:
                raise InvalidInput(f"task {name!r} has no argument {argument!r}")

    def __repr__(self) -> str:
        return f"<task {self.type}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        return self.function(*args, **kwargs)

    if not TYPE_CHECKING:  # to type checkers an unknown attribute stays an error

        def __getattr__(self, name: str) -> Any:
            ours = celery_words.METHODS.get(name)
            told = f"'Task' object has no attribute {name!r}"
            raise AttributeError(f"{told}: {ours}" if ours else told, name=name, obj=self)

    @property
    def types(self) -> tuple[str, ...]:
        """The types this code can run: its own version, and those that upcasters lead up from."""
        if not self._upcasters:
            return (self.type,)
        known = [self.version]
        while (older := known[-1] - 1) in self._upcasters:
            known.append(older)
        return tuple(type_of(self.name, version) for version in known)

    def options(self, **changes: Unpack[TaskOptions]) -> Task[P, R_co]:
        """The same task with other options, for single submissions. Names as in `Options`."""
        given = options_of(self.name, changes, self.given)
        return Task(
            self.app,
            self.function,
            name=self.name,
            version=self.version,
            isolation=self.isolation,
            options=given,
            upcasters=self._upcasters,
        )

    def upcaster(self, *, from_version: int) -> Callable[[Upcaster], Upcaster]:
        """Register how a payload of that version becomes one of the next."""
        if not 1 <= from_version < self.version:
            raise InvalidLimit(
                f"an upcaster of task {self.name!r} starts from version 1 to {self.version - 1}, "
                f"not {from_version}"
            )

        def register(function: Upcaster) -> Upcaster:
            self._upcasters[from_version] = function
            return function

        return register

    def spec(self, *args: P.args, **kwargs: P.kwargs) -> JobSpec:
        """The job that `submit` would store. Raises InvalidPayload where the arguments do not fit."""
        return self._spec(self.arguments.bind(args, kwargs))

    def _template(self) -> JobSpec:
        """What every job of the task has: checked here, where the task is made. No payload, no unique key."""
        given = self.given
        if given.limit_by is not None:
            validation.check_text(given.limit_by, "limit_by", validation.NAME_CHARS_MAX)
        template = checked(
            JobSpec(
                type=self.type,
                queue=given.queue,
                tenant=given.tenant,
                id=given.id,
                priority=given.priority,
                run_at=given.run_at,
                delay_seconds=given.delay,
                tags=given.tags,
                key=given.key,
                key_hold_seconds=_hold(given) if given.key is not None else None,
                after=given.after,
                max_attempts=given.max_attempts,
                lease_seconds=given.lease,
                timeout_seconds=given.timeout,
                lifetime_seconds=given.lifetime,
                backoff=None if given.retry is None else retry.check(given.retry, "retry"),
                correlation_id=given.correlation_id,
                callback_url=given.callback_url,
                on_success=_hooks(given.on_success, "on_success"),
                on_failure=_hooks(given.on_failure, "on_failure"),
            )
        )
        _unique_names(given)
        return template

    def _spec(self, payload: dict[str, Any]) -> JobSpec:
        given = self.given
        changes: dict[str, Any] = {"payload": payload}
        if given.unique is not False or given.limit_by is not None:
            whole = self.arguments.with_defaults(payload)
            if given.unique is not False and given.key is None:
                changes["key"] = self._unique_key(whole)
                changes["key_hold_seconds"] = _hold(given)
            if given.limit_by is not None:
                if given.limit_by in whole.get(RESULTS, {}):
                    raise InvalidInput(
                        f"task {self.name!r} is limited by its argument {given.limit_by!r}, which cannot be "
                        "the result of another job; nothing was stored"
                    )
                changes["limit_key"] = _text(whole.get(given.limit_by))
        if RESULTS in payload:
            given_after = dependencies(self.template)
            known = {one.job_id for one in given_after}
            results = (job_id for job_id in named_jobs(payload) if job_id not in known)
            changes["after"] = (*given_after, *(Dependency(job_id) for job_id in results))
        return msgspec.structs.replace(self.template, **changes)

    def follow_up(self, told: str) -> JobSpec:
        """This task as a hook, or as the callback of a batch: its argument `told` comes when it runs.

        Raises InvalidInput where the handler cannot be called like that.
        """
        self.arguments.check_told(told)
        return msgspec.structs.replace(self.template, payload={}, key=None, key_hold_seconds=None)

    @overload
    async def submit(
        self: Task[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> Job[T]: ...

    @overload
    async def submit(self: Task[P, T], *args: P.args, **kwargs: P.kwargs) -> Job[T]: ...

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> Job[Any]:
        """Store the call as a job; with `unique`, give the job that stands for it already."""
        return await self.app.submit(self, *args, **kwargs)

    @overload
    def submit_sync(
        self: Task[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> Job[T]: ...

    @overload
    def submit_sync(self: Task[P, T], *args: P.args, **kwargs: P.kwargs) -> Job[T]: ...

    def submit_sync(self, *args: P.args, **kwargs: P.kwargs) -> Job[Any]:
        """As `submit`, without an event loop."""
        return self.app.sync.submit(self, *args, **kwargs)

    def load(self, job: Job) -> dict[str, Any]:
        """The keyword arguments for a run of the job, whatever version it was submitted as."""
        if job.type == self.type:
            return self.arguments.load(job.payload_json)
        version = version_of(job.type)
        payload = job.payload
        if not isinstance(payload, dict):
            raise InvalidPayload(f"the payload of job {job.id} is not an object")
        while version < self.version:
            payload = self._upcasters[version](payload)
            version += 1
        return self.arguments.load(codec.encode(payload, limit=codec.PAYLOAD_BYTES_MAX))

    def _unique_key(self, whole: Mapping[str, Any]) -> str:
        named = _unique_names(self.given)
        chosen = whole if named is None else {name: whole.get(name) for name in named}
        try:
            encoded = msgspec.json.encode(chosen, order="sorted")
        except (TypeError, ValueError) as error:
            raise InvalidPayload(
                f"the arguments that make the job unique cannot be written: {error}; nothing was stored"
            ) from error
        return f"unique:{hashlib.sha256(encoded).hexdigest()}"


def type_of(name: str, version: int) -> str:
    return name if version == 1 else f"{name}{VERSION_MARK}{version}"


def version_of(type_: str) -> int:
    _, mark, version = type_.partition(VERSION_MARK)
    return int(version) if mark else 1


def _check_timeout(template: JobSpec, policies: Policies) -> None:
    """A timeout longer than the queue allows would be refused at every submission."""
    if template.timeout_seconds is not UNSET:
        timeout_of(template, policies.of(template.queue))


def _hooks(given: Any, what: str) -> tuple[JobSpec, ...]:
    several = given if isinstance(given, list | tuple) else [given]
    for one in several:
        if not isinstance(one, Task | JobSpec):
            raise InvalidInput(
                f"{what} is {one!r}; it must be a task, a JobSpec, or a list of them; "
                f"{validation.UNCHANGED}"
            )
    return tuple(one.follow_up("job") if isinstance(one, Task) else one for one in several)


def _hold(given: Options) -> float | None:
    return None if given.key_hold is None else validation.check_seconds(given.key_hold, "key_hold")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _unique_names(options: Options) -> tuple[str, ...] | None:
    """The arguments that make a job unique; None: all."""
    unique = options.unique
    if isinstance(unique, bool):
        return None
    if isinstance(unique, list | tuple | set | frozenset):
        return tuple(unique)
    if not isinstance(unique, str):
        raise InvalidInput(
            f"unique is {unique!r}; it must be True, the name of an argument, or a list of names; "
            f"{validation.UNCHANGED}"
        )
    return (unique,)


def _names(options: Options) -> tuple[str, ...]:
    """Arguments that the options speak of."""
    limited = () if options.limit_by is None else (options.limit_by,)
    return (*(_unique_names(options) or ()), *limited)
