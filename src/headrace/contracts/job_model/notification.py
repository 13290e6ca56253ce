"""Who tells the callback urls where no Headrace worker runs: the contract itself, a round at a time."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from headrace import webhooks
from headrace.manager import JobManager
from headrace.redaction import Redacted


class Callbacks(Redacted, frozen=True, kw_only=True):
    """How callback urls are told."""

    secrets: Sequence[str] = ()
    """What requests are signed with. None: they are not, and a receiver cannot know who calls."""
    networks: Sequence[str] = ()
    """Those besides the public addresses that may be sent to, such as "10.1.0.0/16"."""


class Notifier:
    """Works off the jobs that wait to tell of an end."""

    def __init__(self, manager: JobManager, callbacks: Callbacks) -> None:
        self._manager = manager
        self._callbacks = callbacks
        self._worker = f"notifier-{uuid.uuid4()}"

    async def round(self) -> int:
        secrets = self._callbacks.secrets
        return await webhooks.deliver_due(
            self._manager,
            worker=self._worker,
            secrets=secrets,
            signed=bool(secrets),
            allow_private=self._callbacks.networks,
        )
