"""Redrive at scale: jobs that ended badly are chosen by SQL over the lake, and submitted again.

```python
from headrace.spark import redrive

plan = redrive.redrive("sqlite:///jobs.db", "lake", "code = 'E503'", dry_run=True)
done = redrive.redrive("sqlite:///jobs.db", "lake", "code = 'E503'")
```

What is chosen comes from the lake; whether it is still so, the store is asked job by job. A job is redriven
once: one that was redriven before, ever, is passed over, since its new job stands for it (and is chosen by
itself if it ended badly, too). So the same call again, after a crash or a week later, runs nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headrace import validation
from headrace.app.bridge import LoopThread
from headrace.connect import connect
from headrace.envelope import is_sealed
from headrace.errors import HeadraceError, InvalidTransition, JobNotFound
from headrace.manager import JobManager
from headrace.manager.retention import REDRIVABLE
from headrace.model import EventKind, Job
from headrace.spark.choosing import Choice, Chosen, Group, Groups, Row, choosing
from headrace.spark.lake.home import Home, OtherStore
from headrace.spark.lake.storage import storage_of
from headrace.spark.lake.store import known_identity
from headrace.spark.reasons import reason

if TYPE_CHECKING:
    from headrace.crypto import KeyRing
    from headrace.spark.lake.run import Sessions

BATCH_JOBS = 500
"""Submitted in one step."""
_TRIES = 5
_PAGE = 5_000

Tell = Callable[[int, int], None]
"""How many of the chosen jobs have been dealt with, and how many there are."""

_loop = LoopThread()


class RedriveStopped(HeadraceError):
    """The store refused or Spark broke midway. What was redriven stays; the same call goes on."""

    code = "REDRIVE_STOPPED"

    def __init__(self, done: Redriven, cause: Exception) -> None:
        if done.dry_run:
            told = f"the dry run broke off: {reason(cause)}. Nothing was submitted; run it again"
        else:
            told = (
                f"{done.redriven} jobs were redriven, and then: {reason(cause)}. Those stay; run it again to "
                "go on with the rest"
            )
        super().__init__(told)
        self.done = done
        self.cause = cause


@dataclass(frozen=True, kw_only=True)
class Redriven:
    """What became of the jobs that were chosen. In a dry run, what would."""

    dry_run: bool
    chosen: int
    """Failed, dead and cancelled jobs of the lake for which the condition holds, without those `before`."""
    before: int
    """For which it holds as well, but which were redriven before."""
    redriven: int = 0
    """New jobs."""
    alive: int = 0
    """Redriven by somebody else since they were chosen or, with `again`, still alive as a new job: that one
    stands.
    """
    gone: int = 0
    """The store has deleted them since."""
    changed: int = 0
    """The store's job of that id is another by now."""
    sealed: int = 0
    """Encrypted, and their key was not given."""
    groups: tuple[Group, ...] = field(default=())
    """Of a dry run: the jobs that would be redriven by error, the largest group first."""


class _Deal(NamedTuple):
    """What one batch came to."""

    redriven: int = 0
    alive: int = 0
    gone: int = 0
    changed: int = 0
    sealed: int = 0


def redrive(
    url: str,
    lake: str | Path,
    where: str,
    *,
    limit: int | None = None,
    dry_run: bool = False,
    again: bool = False,
    tenant: str | None = None,
    keys: KeyRing | None = None,
    spark: Sessions = None,
    tell: Tell | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Redriven:
    """Submit the failed, dead and cancelled jobs again for which `where` holds, the oldest first.

    `where` is a condition on the table `jobs` (silver) in Spark's SQL; subqueries may read `attempts`, too.
    `limit`: no more than so many. `again`: also those that were redriven before and whose new job has ended.
    A dry run submits nothing. Batch by batch: whatever ends it, the same call goes on. `spark`: a session,
    or a function that makes one, which is called once store and lake were looked at.

    Raises InvalidInput for a condition that is none, NoLake, OtherStore, LogTrimmed if the log has lost what
    the lake has not read yet, and RedriveStopped.
    """
    if limit is not None:
        validation.check_limit(limit, "limit")
    home = Home(storage_of(lake, storage_options))
    identity, cursor = home.identity(), home.cursor()
    manager = _loop.run(connect(url, tenant=tenant, keys=keys, create=False))
    try:
        if _loop.run(known_identity(manager)) != identity.store_id:
            raise OtherStore(
                f"the lake at {home.lake} holds the events of another store than this url's; nothing was "
                "submitted. Give the url that it was made with"
            )
        others = Others(manager, _loop.run(manager.tail()) if again else cursor)
        recent = tuple(_loop.run(others.since()))
        choice = Choice(where=where, limit=limit, tenant=tenant, again=again, recent=recent)
        given = spark() if callable(spark) else spark
        with choosing(given, home.lake, choice) as chosen:
            return _deal_with(others, chosen, dry_run=dry_run, tell=tell)
    finally:
        _loop.run(manager.close())


def _deal_with(others: Others, chosen: Chosen, *, dry_run: bool, tell: Tell | None) -> Redriven:
    from pyspark.errors import PySparkException

    counts = _Deal()
    groups = Groups() if dry_run else None

    def told() -> Redriven:
        return Redriven(
            dry_run=dry_run,
            chosen=chosen.count,
            before=chosen.before,
            groups=() if groups is None else groups.largest(),
            **counts._asdict(),
        )

    try:
        for batch in _batches(chosen.rows()):
            deal = _loop.run(_redrive_batch(others, batch, groups))
            counts = _Deal(*map(sum, zip(counts, deal, strict=True)))
            if tell is not None:
                tell(sum(counts), chosen.count)
    except (HeadraceError, PySparkException) as error:
        raise RedriveStopped(told(), error) from error
    return told()


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while batch := list(islice(rows, BATCH_JOBS)):
        yield batch


async def _redrive_batch(others: Others, batch: Sequence[Row], groups: Groups | None) -> _Deal:
    """Look at the jobs as the store has them, and submit those that are as the lake says.

    With `groups` it is a dry run: they are counted there instead.
    """
    manager = others.manager
    for tries_left in reversed(range(_TRIES)):
        found = await manager.look_up([row.job_id for row in batch])
        rows = [row for row in batch if _is_as_told(row, found.get(row.job_id))]
        as_told = [found[row.job_id] for row in rows]
        readable = [job for job in as_told if not is_sealed(job.payload_json)]
        # A new job that has ended by now holds no key any more: only the log knows of it.
        taken = await others.have(readable)
        ready = [job for job in readable if job.id not in taken]
        deal = _Deal(
            alive=len(taken),
            gone=sum(row.job_id not in found for row in batch),
            changed=sum(row.job_id in found for row in batch) - len(as_told),
            sealed=len(as_told) - len(readable),
        )
        if groups is not None:
            living = await _living(manager, ready)
            wanted = {job.id for job in ready} - living
            for row in rows:
                if row.job_id in wanted:
                    groups.add(row)
            return deal._replace(redriven=len(ready) - len(living), alive=deal.alive + len(living))
        if not ready:
            return deal
        try:
            submitted = await manager.redrive([job.id for job in ready])
        except (JobNotFound, InvalidTransition):
            if not tries_left:
                raise
            continue  # one was deleted between looking and submitting: nothing was submitted yet
        others.made(job.id for job, new in zip(ready, submitted.created, strict=True) if new)
        new = sum(submitted.created)
        return deal._replace(redriven=new, alive=deal.alive + len(ready) - new)
    raise AssertionError("unreachable")


async def _living(manager: JobManager, jobs: Sequence[Job]) -> set[str]:
    """Those of the jobs whose new job lives: redriving them gives that one."""
    heirs = await manager.redriven_as([job.id for job in jobs])
    return {job_id for job_id, heir in heirs.items() if not heir.is_terminal}


def _is_as_told(row: Row, job: Job | None) -> bool:
    """An id may be used again; a job that has ended badly does not change any more."""
    return (
        job is not None
        and job.state in REDRIVABLE
        and job.version == row.version
        and row.created_at in (None, job.created_at)
    )


class Others:
    """What anybody redrives, read from the log as it grows: two calls at once choose the same jobs."""

    def __init__(self, manager: JobManager, cursor: str) -> None:
        self.manager = manager
        self._cursor = cursor
        self._seen: set[str] = set()
        self._own: set[str] = set()
        """What this call has redriven, and not yet read in the log."""

    async def since(self) -> list[str]:
        """The jobs that were redriven since it was last asked, or since the cursor."""
        found: list[str] = []
        goes_on = True
        while goes_on:
            page = await self.manager.events(after=self._cursor, limit=_PAGE)
            for event in page:
                if event.kind is EventKind.ENQUEUED and event.detail_json is not None:
                    previous = msgspec.json.decode(event.detail_json).get("previous_id")
                    if previous is not None:
                        found.append(previous)
            self._cursor = page[-1].cursor if page else self._cursor
            goes_on = len(page) == _PAGE
        return found

    async def have(self, jobs: Sequence[Job]) -> set[str]:
        """Those of the jobs that were redriven since the choice."""
        read = set(await self.since())
        self._seen |= read - self._own
        self._own -= read
        return {job.id for job in jobs} & self._seen

    def made(self, job_ids: Iterable[str]) -> None:
        """Remember what this call itself has redriven: that is not to be kept, however much it is."""
        self._own.update(job_ids)
