"""Chains and groups: specs of jobs that take each other's results, to be submitted in one step."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from headrace import validation
from headrace.app.inputs import result_of, results_of
from headrace.app.task import Task
from headrace.errors import InvalidInput
from headrace.graph import DEPENDENCIES_MAX
from headrace.input_checks import checked
from headrace.spec import JobSpec


@checked
def chain(first: JobSpec, *then: Task[..., Any]) -> tuple[JobSpec, ...]:
    """Each task is called with the result of the one before as its first argument."""
    specs = [_identified(first)]
    for task in then:
        spec = task.options(id=str(uuid.uuid4())).spec(result_of(specs[-1]))
        specs.append(_identified(spec))
    return tuple(specs)


@checked
def group(specs: Iterable[JobSpec], then: Task[..., Any]) -> tuple[JobSpec, ...]:
    """`then` is called with the list of their results, in this order, once all have completed."""
    members = [_identified(spec) for spec in specs]
    if not 1 <= len(members) <= DEPENDENCIES_MAX:
        raise InvalidInput(
            f"a group has 1 to {DEPENDENCIES_MAX} jobs, not {len(members)}: for more, submit a batch with a "
            "callback; nothing was stored"
        )
    return (*members, _identified(then.spec(results_of(members))))


def _identified(spec: JobSpec) -> JobSpec:
    """With an id that the others can name before it is stored."""
    if not isinstance(spec, JobSpec):
        raise InvalidInput(
            f"a workflow begins with specs, not with a {type(spec).__name__}: write task.spec(…); "
            "nothing was stored"
        )
    if spec.key is not None:
        raise InvalidInput(
            f"the job of type {validation.told(spec.type)} has a key, so another job might stand for it: "
            "submit it by itself, and take the result of the job that you get; nothing was stored"
        )
    return spec if spec.id is not None else replace(spec, id=str(uuid.uuid4()))
