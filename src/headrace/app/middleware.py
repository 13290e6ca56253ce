"""Code around every submission and every run, in the order it is listed: the first is outermost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from headrace.app.context import Context
from headrace.model import Job
from headrace.spec import JobSpec

Submit = Callable[[Sequence[JobSpec]], Awaitable[tuple[Job, ...]]]
Run = Callable[[Context], Awaitable[Any]]


class Middleware:
    """Override what you need; each must call `call_next`, once, to go on."""

    async def submit(self, specs: Sequence[JobSpec], call_next: Submit) -> tuple[Job, ...]:
        """Around a submission: look at or change the specs, and at the jobs that came of them."""
        return await call_next(specs)

    async def run(self, context: Context, call_next: Run) -> Any:
        """Around one attempt: its result goes through here, and so does what it raises."""
        return await call_next(context)


def around_submit(middleware: Sequence[Middleware], innermost: Submit) -> Submit:
    call = innermost
    for one in reversed(middleware):
        call = _submit_through(one, call)
    return call


def around_run(middleware: Sequence[Middleware], innermost: Run) -> Run:
    call = innermost
    for one in reversed(middleware):
        call = _run_through(one, call)
    return call


def _submit_through(one: Middleware, call_next: Submit) -> Submit:
    async def submit(specs: Sequence[JobSpec]) -> tuple[Job, ...]:
        return await one.submit(specs, call_next)

    return submit


def _run_through(one: Middleware, call_next: Run) -> Run:
    async def run(context: Context) -> Any:
        return await one.run(context, call_next)

    return run
