"""Tasks that every worker brings: delivering webhooks, and the joins of large batches."""

from __future__ import annotations

from typing import Any

from headrace import webhooks
from headrace.app import Context, Headrace, Isolation, Options, Task
from headrace.completion import JOIN_TYPE


def builtin_tasks(app: Headrace) -> list[Task[..., Any]]:
    """Webhooks only where the application has secrets to sign them with: others leave them waiting."""
    found = [_task(app, JOIN_TYPE, join)]
    if app.webhook_secrets:
        found.append(_task(app, webhooks.TYPE, deliver))
    return found


async def deliver(context: Context, job_id: str, url: str, message_id: str) -> dict[str, Any]:  # noqa: ARG001 - the payload's names; `deliver` reads them from the job
    """Tell a callback url of a job's end."""
    app = context.app
    return await webhooks.deliver(
        context.manager,
        context.job,
        secrets=app.webhook_secrets,
        allow_private=app.webhook_networks,
    )


async def join() -> None:
    """Never runs: a job that only waits for others is completed by what it waited for."""


def _task(app: Headrace, type_: str, function: Any) -> Task[..., Any]:
    return Task(
        app,
        function,
        name=type_,
        version=1,
        isolation=Isolation.LOOP,
        options=Options(),
        upcasters={},
    )
