"""JobManager: every command and query of Headrace, over any store."""

from __future__ import annotations

import functools
import random
from typing import Self

from headrace import validation
from headrace.clock import Clock
from headrace.crypto import KeyRing
from headrace.errors import InvalidInput
from headrace.input_checks import checked, guarded
from headrace.manager import (
    clock_recovery,
    leases,
)
from headrace.manager.context import Context
from headrace.manager.verbs.reading import Reading
from headrace.manager.verbs.steering import Steering
from headrace.manager.verbs.submitting import Submitting
from headrace.manager.verbs.upkeep import Upkeep
from headrace.manager.verbs.working import Working
from headrace.policy import Policies
from headrace.stores.base import (
    Capabilities,
    JobStore,
    JoinsTransactions,
)


@guarded
class JobManager(Submitting, Working, Steering, Upkeep, Reading):
    """One manager per store and process; safe to share between tasks.

    A manager bound to a tenant (`scoped`) reads and changes nothing of any other: a foreign id
    answers exactly as an unknown one. Every call that changes jobs returns them as they are after,
    with the capacity it freed; a call that raises has changed nothing.
    """

    @functools.partial(checked, leaving=("store",))
    def __init__(
        self,
        store: JobStore,
        *,
        clock: Clock,
        policies: Policies | None = None,
        tenant: str | None = None,
        dice: random.Random | None = None,
        keys: KeyRing | None = None,
    ) -> None:
        self._context = Context(
            store,
            clock,
            policies or Policies(),
            None if tenant is None else validation.check_name(tenant, "tenant"),
            dice or random.Random(),  # noqa: S311 - jitter, not secrets
            keys=keys,
        )
        self._claims = leases.Claims(self._context)
        self._clock_recovery = clock_recovery.ClockRecovery(self._context)
        self._scoped: dict[str, JobManager] = {}

    @property
    def clock(self) -> Clock:
        """What all its times come from: the store's clock, unless it was given another."""
        return self._context.clock

    @property
    def policies(self) -> Policies:
        """The rules of each queue."""
        return self._context.policies

    @property
    def keys(self) -> KeyRing | None:
        """What new contents are encrypted with. None: nothing is."""
        return self._context.sealing.keys

    @property
    def capabilities(self) -> Capabilities:
        """What the store can do that others cannot."""
        return self.store.capabilities

    def scoped(self, tenant: str) -> JobManager:
        """The same store seen by one tenant. A manager that is bound to one reaches no other."""
        validation.check_name(tenant, "tenant")
        if self.tenant not in (None, tenant):
            raise InvalidInput(
                f"this manager is bound to tenant {self.tenant!r}; it reaches no other"
            )
        scoped = self._scoped.get(tenant)
        if scoped is None:
            scoped = self._scoped[tenant] = self._sibling(self.store, tenant)
        return scoped

    def on(self, connection: object) -> JobManager:
        """The same manager inside the transaction of `connection`, for submitting.

        What it submits commits or vanishes with everything else in that transaction. Which connections
        can be given is the store's to say; one that cannot do this at all raises InvalidInput.
        """
        if not isinstance(self.store, JoinsTransactions):
            raise InvalidInput(
                f"jobs of a {self.capabilities.name} store cannot be submitted in a transaction of yours"
            )
        return self._sibling(self.store.on(connection), self.tenant)

    def _sibling(self, store: JobStore, tenant: str | None) -> JobManager:
        """The same clock, policies, dice and keys on another view of the store."""
        sibling = JobManager(
            store,
            clock=self.clock,
            policies=self.policies,
            tenant=tenant,
            dice=self._context.dice,
            keys=self.keys,
        )
        sibling._context.recent = self._context.recent  # what one has read, the other need not
        return sibling

    async def close(self) -> None:
        """Give the store's connections back. `async with manager:` does it at the end."""
        await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
