"""The options of a task and of a single submission: by name, checked, and known to type checkers."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec
from msgspec import UNSET, UnsetType

from headrace import validation
from headrace.app import celery_words
from headrace.duration import Seconds
from headrace.errors import InvalidInput
from headrace.model import DEFAULT_QUEUE, Priority
from headrace.redaction import Redacted
from headrace.retry import StoredBackoff
from headrace.spec import After, JobSpec

if TYPE_CHECKING:
    from headrace.app.task import Task


class Options(Redacted, frozen=True, kw_only=True):
    """How the jobs of a task are submitted and run. What is left out comes from the queue's policy.

    A duration is seconds, a timedelta, or text: `90`, `timedelta(minutes=5)`, `"5m"`, `"1h30m"`.
    """

    queue: str = DEFAULT_QUEUE
    priority: int | str = Priority.NORMAL
    """0 to 4, or the level's name: `"high"`."""
    max_attempts: int | UnsetType | None = UNSET
    retry: StoredBackoff | None = None
    timeout: Seconds | UnsetType | None = UNSET
    """Execution timeout of one attempt. The queue's own is the most that can be asked for."""
    lease: Seconds | UnsetType | None = UNSET
    lifetime: Seconds | UnsetType | None = UNSET
    tags: Iterable[str] | Mapping[str, Any] = ()
    unique: bool | str | Iterable[str] = False
    """Only one at a time: True by all arguments, or by those named."""
    limit_by: str | None = None
    """The argument whose value the queue's per-key limits count by."""
    # of single jobs, rather than of the task
    id: str | None = None
    key: str | None = None
    key_hold: Seconds | None = None
    """Hold the key (or `unique`) for so long, whether or not the job has ended."""
    tenant: str | None = None
    delay: Seconds | None = None
    run_at: datetime | None = None
    after: After = ()
    """What must come before: a job, an id, a Dependency, or several of them."""
    correlation_id: str | None = None
    callback_url: str | None = None
    """Told of the job's end by a signed request."""
    on_success: Task[..., Any] | JobSpec | Iterable[Task[..., Any] | JobSpec] = ()
    """Run once the job has completed; a task among them is given the job as its argument `job`."""
    on_failure: Task[..., Any] | JobSpec | Iterable[Task[..., Any] | JobSpec] = ()
    """Run once the job has ended in any other way."""


class TaskOptions(TypedDict, total=False):
    """`Options`, as keywords: what type checkers and editors know of `app.task(…)` and `task.options(…)`."""

    queue: str
    priority: int | str
    max_attempts: int | UnsetType | None
    retry: StoredBackoff | None
    timeout: Seconds | UnsetType | None
    lease: Seconds | UnsetType | None
    lifetime: Seconds | UnsetType | None
    tags: Iterable[str] | Mapping[str, Any]
    unique: bool | str | Iterable[str]
    limit_by: str | None
    id: str | None
    key: str | None
    key_hold: Seconds | None
    tenant: str | None
    delay: Seconds | None
    run_at: datetime | None
    after: After
    correlation_id: str | None
    callback_url: str | None
    on_success: Task[..., Any] | JobSpec | Iterable[Task[..., Any] | JobSpec]
    on_failure: Task[..., Any] | JobSpec | Iterable[Task[..., Any] | JobSpec]


def options_of(task: str, given: Mapping[str, Any], base: Options | None = None) -> Options:
    """The options by their names, over those of `base`. Raises InvalidInput for a name that is none."""
    known = Options.__struct_fields__
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        meant = difflib.get_close_matches(unknown, known, n=1)
        hint = f"did you mean {meant[0]!r}?" if meant else f"known are {', '.join(known)}"
        hint = celery_words.OPTIONS.get(unknown, hint)
        raise InvalidInput(
            f"task {task!r}: there is no option {unknown!r}: {hint}; {validation.UNCHANGED}"
        )
    return Options(**given) if base is None else msgspec.structs.replace(base, **given)
