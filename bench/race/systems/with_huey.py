"""Huey on a SQLite file with fsync: one thread that looks every 10 ms, as its database cannot tell it."""

from __future__ import annotations

from huey import SqliteHuey

from bench.race.driver import FILLING, URL, System
from bench.race.ledger import note

huey = SqliteHuey("race", filename=URL, results=False, fsync=True)


@huey.task()
def noop(n: int, filling: str) -> None:
    note(n)


class Huey(System):
    async def reset(self) -> None:
        huey.flush()

    async def submit(self, job: int) -> None:
        noop(job, FILLING)

    async def left(self) -> int:
        return int(huey.pending_count())


SYSTEM = Huey
