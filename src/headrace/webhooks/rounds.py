"""Delivering what is due, where no worker of an application does it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from headrace.completion import WEBHOOK_TYPE
from headrace.errors import HeadraceError, PermanentError, TemporaryError
from headrace.input_checks import checked
from headrace.manager import JobManager
from headrace.model import Job
from headrace.policy import WEBHOOKS_QUEUE
from headrace.webhooks.delivery import deliver

logger = logging.getLogger("headrace.webhooks")

AT_ONCE = 32


@checked
async def deliver_due(
    manager: JobManager, *, worker: str, secrets: Sequence[str], **options: Any
) -> int:
    """Claim the webhooks that are due, up to 32, tell all of them at the same time, record how it went.

    Options as in `deliver`. How many were claimed: while they are 32, there may be more.
    """
    claimed = await manager.claim(
        worker, queues=[WEBHOOKS_QUEUE], types=[WEBHOOK_TYPE], limit=AT_ONCE
    )
    await asyncio.gather(*(_tell(manager, job, secrets, options) for job in claimed))
    return len(claimed)


async def _tell(
    manager: JobManager, job: Job, secrets: Sequence[str], options: dict[str, Any]
) -> None:
    try:
        try:
            answer = await deliver(manager, job, secrets=secrets, **options)
        except (PermanentError, TemporaryError) as error:
            logger.info("webhook %s: %s", job.id, error)
            await manager.fail(job.id, job.token, error)
        else:
            await manager.complete(job.id, job.token, answer)
    except HeadraceError as error:
        # Its lease lapses, and it is tried again: one webhook must not keep others from being told.
        logger.warning("webhook %s was left as it was: %s", job.id, error)
