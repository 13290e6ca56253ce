"""A client that submits its part of the plan, dies at random, and cannot know how far it was when it did.

It writes down what it asks for before it asks, and what it was told after. Started again, it repeats
whatever it has no answer to: jobs with keys must be found again, jobs with ids must be refused.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
from pathlib import Path

from headrace import JobManager
from headrace.errors import DuplicateJob, InvalidBatch
from headrace.model import TERMINAL
from headrace.testing.checker.client_log import Answered, ClientLog, read_lines
from tests.faults.app import LOG_VARIABLE, app
from tests.faults.plan import Batch, plan

UNENDED_MAX = 400
"""It does not run ahead of the workers: the storm lasts as long as the submissions."""
DEATHS = 4
"""How often it dies of itself, on average."""


class Submitter:
    def __init__(
        self, manager: JobManager, log: ClientLog, name: str, *, risk: float, dice: random.Random
    ) -> None:
        self._manager = manager
        self._log = log
        self._name = name
        self._risk = risk
        self._dice = dice

    async def submit(self, batch: Batch) -> None:
        while await self._unended() > UNENDED_MAX:  # noqa: ASYNC110 - what it waits for is in a store
            await asyncio.sleep(0.1)
        ticket = f"{self._name}:{batch.number}:{os.getpid()}"
        self._log.asked(ticket, [one.id for one in batch.specs], batch.keys)
        self._perhaps_die_soon()
        ids = await self._stored(batch)
        if self._dice.random() < self._risk / 2:
            os.kill(os.getpid(), signal.SIGKILL)  # it is stored, and nobody will ever hear
        self._log.answered(ticket, ids)

    async def _stored(self, batch: Batch) -> list[str]:
        try:
            return [job.id for job in (await self._manager.submit_many(batch.specs)).jobs]
        except (DuplicateJob, InvalidBatch) as error:
            cause = error.cause if isinstance(error, InvalidBatch) else error
            if not isinstance(cause, DuplicateJob):
                raise
            # All or nothing: one that is there says that an earlier life has stored them all.
            return [
                job.id for job in await self._manager.get_many([str(one.id) for one in batch.specs])
            ]

    def _perhaps_die_soon(self) -> None:
        if self._dice.random() < self._risk / 2:
            # While the submission is on its way: before, in or after its commit.
            delay = self._dice.uniform(0.0, 0.02)
            asyncio.get_running_loop().call_later(delay, os.kill, os.getpid(), signal.SIGKILL)

    async def _unended(self) -> int:
        states = (await self._manager.stats()).states
        return sum(count for state, count in states.items() if state not in TERMINAL)


def answered_before(folder: Path, name: str) -> set[int]:
    """The batches that earlier lives have an answer to."""
    lines = [line for path in folder.glob(f"{name}-*.log") for line in read_lines(path)]
    return {int(line.ticket.split(":")[1]) for line in lines if isinstance(line, Answered)}


async def main(url: str, *, client: int, jobs: int, seed: int) -> None:
    name = f"submitter-{client}"
    folder = Path(os.environ[LOG_VARIABLE])
    done = answered_before(folder, name)
    own = [batch for batch in plan(jobs, seed) if batch.is_for(client)]
    app.url = url
    async with app:
        submitter = Submitter(
            await app.manager(),
            # A file for each life: what a killed one has left half written stays the end of its file.
            ClientLog(folder / f"{name}-{os.getpid()}.log"),
            name,
            risk=min(0.2, DEATHS / len(own)),
            dice=random.Random(f"{seed}-{client}-{os.getpid()}"),
        )
        for batch in own:
            if batch.number not in done:
                await submitter.submit(batch)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--client", type=int, required=True)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    chosen = parser.parse_args()
    asyncio.run(main(chosen.url, client=chosen.client, jobs=chosen.jobs, seed=chosen.seed))
